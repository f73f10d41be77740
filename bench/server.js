// Serves a prepared export from a process of its own: `node bench/server.js PEOPLE [OPTIONS]`, at full speed unless the
// options say {"gzip":true}. Counts truthfully, and serves any range
// of days, which is a range of the file's bytes.
import { createReadStream, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { prepareRows } from "./rows.js";

const { plain, gzipped, days: daysFile } = await prepareRows(Number(process.argv[2]));
const { gzip = false } = JSON.parse(process.argv[3] ?? "{}");
const days = JSON.parse(readFileSync(daysFile, "utf8"));

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const range = rangeOf(searchParams);
  if (pathname.endsWith("/people/stream")) stream(range, request, response);
  else if (pathname.endsWith("/people")) count(range, response);
  else response.writeHead(404).end('{"success":false,"error":{"code":"NOT_FOUND"}}');
});
server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  if (process.send) process.send(url);
  else console.log(url);
});
process.on("disconnect", () => process.exit());

/** Newest first: what is later than the range comes before it in the file. */
function rangeOf(query) {
  const from = query.get("discovered_from") ?? "";
  const to = query.get("discovered_to") ?? "9999";
  const range = { rows: 0, start: 0, bytes: 0 };
  for (const { day, rows, bytes } of days) {
    if (day > to) range.start += bytes;
    else if (day >= from) {
      range.rows += rows;
      range.bytes += bytes;
    }
  }
  return range;
}

function count({ rows }, response) {
  const pagination = { page: 1, limit: 1, total: rows, totalPages: rows };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ success: true, data: [], pagination }));
}

function stream({ rows, start, bytes }, { headers }, response) {
  response.setHeader("content-type", "application/x-ndjson");
  if (bytes === 0) return response.end();
  const total = days.reduce((sum, day) => sum + day.rows, 0);
  const zips = gzip && rows === total && /\bgzip\b/.test(headers["accept-encoding"] ?? "");
  if (zips) response.setHeader("content-encoding", "gzip");
  const options = zips ? {} : { start, end: start + bytes - 1 };
  const file = createReadStream(zips ? gzipped : plain, { ...options, highWaterMark: 256 * 1024 });
  file.pipe(response);
}
