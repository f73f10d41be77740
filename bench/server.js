// Serves a prepared export at full speed, from a process of its own: `node bench/server.js PEOPLE [OPTIONS]`, gzipped if the
// options say {"gzip":true}. It knows no filters: everything is in one window.
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { prepareRows } from "./rows.js";

const people = Number(process.argv[2]);
const { gzip = false } = JSON.parse(process.argv[3] ?? "{}");
const { plain, gzipped } = await prepareRows(people);

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname.endsWith("/people/stream")) {
    response.setHeader("content-type", "application/x-ndjson");
    if (gzip) response.setHeader("content-encoding", "gzip");
    createReadStream(gzip ? gzipped : plain, { highWaterMark: 256 * 1024 }).pipe(response);
  } else if (pathname.endsWith("/people")) {
    const pagination = { page: 1, limit: 1, total: people, totalPages: people };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ success: true, data: [], pagination }));
  } else response.writeHead(404).end('{"success":false,"error":{"code":"NOT_FOUND"}}');
});
server.listen(0, "127.0.0.1", () => process.send(`http://127.0.0.1:${server.address().port}`));
process.on("disconnect", () => process.exit());
