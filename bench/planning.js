// The cost of proofs: how many requests a sync takes, which of them gets the first row, and how many rows are read for
// each row of the account.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ours } from "./candidates.js";
import { lineFeedsIn, table } from "./measure.js";
import { startServer } from "./server-process.js";

const ROWS_PER_SECOND = 50_000;
const ROW_BYTES = 490;

const NOON = "2026-03-10T12:00:00Z";
const DRAIN = `drain=1:every=${Math.round(ROWS_PER_SECOND / 24)}:order=random`;

/**
 * The service, and its syncs, one after the other, each with the state of the one before: their names, what the design promises,
 * and what happens before them. A first sync makes 8 requests before it plans: two counts, the list of sources, and a count
 * of each of five sources. The first sync of a UTC day counts at most 24 ranges of days. It looks for people without a date.
 */
const ACCOUNTS = [
  [
    { people: 1_000_000, days: 0.9, now: "2026-03-10T23:59:00Z", passDays: 20 },
    ["1,000,000 people of one day", "17 requests, first row within 15"],
  ],
  [
    { people: 1_000_000, windows: 100_000 },
    ["1,000,000 people over ten years, windows of 100,000", "3 requests an export, first row within 15"],
  ],
  [
    { people: 600_000, faults: [DRAIN] },
    ["600,000 people, 24 of 50,000 rows checked again", "1.2 times the rows, exit 0"],
  ],
  [
    { people: 60_000, days: 360, faults: ["export-limit=2000"] },
    ["60,000 people, exports above 2,000 rows answer 504", "2 requests per 1,000 rows, 1.5 times the rows"],
  ],
  [
    { people: 20_000, now: NOON },
    ["20,000 people", "9 requests"],
    ["the same, a quiet incremental sync", "2 requests"],
    ["the same, the first sync of a UTC day", "30 requests", { passDays: 1 }],
    ["the same, 200 people checked again, and the next day", "30 requests", { recheck: 200, passDays: 1 }],
  ],
  [
    { people: 3_000, undated: 900, now: NOON },
    ["3,000 people, and 900 without a date", "9 requests"],
    ["the next day, one has got a date", "915 rows passed on", { passDays: 1, faults: ["date-undated=1"] }],
  ],
];

export async function planning() {
  const rows = [];
  for (const [{ windows: max_window_rows, ...service }, ...syncs] of ACCOUNTS) {
    const options = { bytesPerSecond: ROWS_PER_SECOND * ROW_BYTES, ...service };
    const server = await startServer("./sandbox.js", JSON.stringify(options));
    const meter = await startMeter(server.url);
    const folder = mkdtempSync(join(tmpdir(), "planning-"));
    try {
      for (const [name, goal, before = {}] of syncs) {
        console.error(name);
        await server.ask(before);
        const { exit, passedOn } = await sync(meter.url, folder, { max_window_rows });
        const { requests, exports, firstExport, rows: read } = meter.take();
        const share = (read / service.people).toFixed(2);
        rows.push([name, goal, requests, exports, firstExport, share, passedOn, exit]);
      }
    } finally {
      rmSync(folder, { recursive: true });
      meter.close();
      server.stop();
    }
  }
  const counts = ["requests", "exports", "first row with request", "rows read, in all"];
  return table(["account", "to reach", ...counts, "rows passed on", "exit"], rows, 2);
}

/** Runs one sync to its end: its exit code, and how many rows it passed on. The state stays in the folder. */
async function sync(url, folder, config) {
  const [state, summary] = [join(folder, "state.json"), join(folder, "summary.json")];
  const [program, ...args] = [...ours(url, config), "--state-file", state, "--summary", summary];
  const [exit] = await once(spawn(program, args, { stdio: "ignore" }), "close");
  return { exit, passedOn: JSON.parse(readFileSync(summary, "utf8")).rows.toLocaleString("en") };
}

/** A way to a service that counts requests and the rows in their answers. */
async function startMeter(serviceUrl) {
  let counts;
  /** The counts since the last call. */
  const take = () => {
    const taken = counts;
    counts = { requests: 0, exports: 0, firstExport: 0, rows: 0 };
    return taken;
  };
  take();
  const proxy = createServer(({ method, url, headers }, response) => {
    const to = new URL(url, serviceUrl);
    const isExport = to.pathname.endsWith("/stream");
    counts.requests += 1;
    if (isExport) {
      counts.exports += 1;
      counts.firstExport ||= counts.requests;
    }
    const options = { method, headers: { ...headers, "accept-encoding": "identity" } };
    const onward = request(to, options, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      let page = "";
      answer.on("data", (chunk) => {
        if (isExport) counts.rows += lineFeedsIn(chunk);
        else page += chunk.toString("latin1");
      });
      answer.on("end", () => {
        if (!isExport) counts.rows += JSON.parse(page).data.length;
      });
      answer.pipe(response);
    });
    response.on("close", () => onward.destroy());
    onward.on("error", () => response.destroy()).end();
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${proxy.address().port}`, take, close: () => proxy.close() };
}
