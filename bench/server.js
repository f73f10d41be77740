// Serves a prepared export at full speed, from a process of its own: `node bench/server.js PEOPLE [OPTIONS]`, gzipped if the
// options say {"gzip":true}. All rows are of one day, so filters by days give all of them or none. It lists no sources.
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { DAY, prepareRows } from "./rows.js";

const people = Number(process.argv[2]);
const { gzip = false } = JSON.parse(process.argv[3] ?? "{}");
const { plain, gzipped } = await prepareRows(people);

const server = createServer((request, response) => {
  const { pathname, searchParams: query } = new URL(request.url, "http://localhost");
  const hasDay = (query.get("discovered_from") ?? DAY) <= DAY && DAY <= (query.get("discovered_to") ?? DAY);
  if (pathname.endsWith("/people/stream")) {
    response.setHeader("content-type", "application/x-ndjson");
    if (!hasDay) return response.end();
    if (gzip) response.setHeader("content-encoding", "gzip");
    return createReadStream(gzip ? gzipped : plain, { highWaterMark: 256 * 1024 }).pipe(response);
  }
  const total = pathname.endsWith("/people") && hasDay ? people : 0;
  response.setHeader("content-type", "application/json");
  const pagination = { page: 1, limit: 1, total, totalPages: total };
  response.end(JSON.stringify({ success: true, data: [], pagination }));
});
server.listen(0, "127.0.0.1", () => process.send(`http://127.0.0.1:${server.address().port}`));
process.on("disconnect", () => process.exit());
