// What proofs cost: how many requests a sync takes, which of them brings the first row, and how many bytes of rows are
// read for each byte of a row that is delivered.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../dist/source-contact-intelligence.js", import.meta.url));
const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";
const ROWS_PER_SECOND = 50_000;
const ROW_BYTES = 490;

const ACCOUNTS = [
  {
    name: "20,000 people over ten years",
    service: { people: 20_000 },
    again: true,
  },
  {
    name: "1,000,000 people of one day",
    service: { people: 1_000_000, days: 0.9, now: "2026-03-10T23:59:00Z", passDays: 20 },
  },
  {
    name: "1,000,000 people over ten years, windows of 100,000",
    service: { people: 1_000_000 },
    config: { max_window_rows: 100_000 },
  },
  {
    name: "600,000 people, 24 a second checked again at random",
    service: { people: 600_000, faults: [`drain=1:every=${Math.round(ROWS_PER_SECOND / 24)}:order=random`] },
  },
  {
    name: "300,000 people of 30 days, 100 a second checked again, the oldest first",
    service: { people: 300_000, days: 30, faults: ["drain=1:every=300"], speed: 30_000 },
  },
];

/** @param said told what is under way */
export async function planning(said) {
  const rows = [];
  for (const { name, service, config, again } of ACCOUNTS) {
    said(name);
    const { speed = ROWS_PER_SECOND, ...options } = service;
    const server = fork(fileURLToPath(new URL("./planning-server.js", import.meta.url)), [
      JSON.stringify({ bytesPerSecond: speed * ROW_BYTES, ...options }),
    ]);
    const [url] = await once(server, "message");
    const folder = mkdtempSync(join(tmpdir(), "planning-"));
    try {
      rows.push([name, ...(await sync(server, url, folder, config))]);
      if (again)
        rows.push(["the same, a quiet incremental sync", ...(await sync(server, url, folder, config))]);
    } finally {
      rmSync(folder, { recursive: true });
      server.disconnect();
    }
  }
  const head = ["account", "requests", "exports", "first row with request", "bytes read / delivered", "exit"];
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, nth) => (nth === 0 ? "---" : "---:"));
  return [{ text: [head, rule, ...rows].map(line).join("\n") }];
}

/** One sync, with the state of the one before. */
async function sync(server, url, folder, config) {
  const before = (await requestsOf(server)).length;
  const wire = await countedWire(new URL(url));
  const file = join(folder, "config.json");
  const all = { base_url: wire.url, api_key: KEY, requests_per_minute: 6000, ...config };
  writeFileSync(file, JSON.stringify(all));
  const state = join(folder, "state.json");
  const args = ["read", "--config", file, "--format", "jsonl", "--stream", "people", "--state-file", state];
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ["ignore", "pipe", "ignore"] });
  let delivered = 0;
  child.stdout.on("data", (chunk) => {
    delivered += chunk.length;
  });
  const [code] = await once(child, "close");
  wire.close();
  const requests = (await requestsOf(server)).slice(before);
  const isExport = ({ path }) => path.endsWith("/stream");
  const first = requests.findIndex(isExport) + 1;
  const ratio = delivered === 0 ? "" : (wire.received / delivered).toFixed(2);
  return [requests.length, requests.filter(isExport).length, first, ratio, code];
}

async function requestsOf(server) {
  server.send("requests");
  const [requests] = await once(server, "message");
  return requests;
}

/** A way to a server that counts the bytes that come back. */
async function countedWire({ hostname, port }) {
  const wire = { url: "", received: 0, close: () => listener.close() };
  const listener = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    upstream.on("data", (chunk) => {
      wire.received += chunk.length;
    });
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      socket.on("error", () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  wire.url = `http://127.0.0.1:${listener.address().port}`;
  return wire;
}
