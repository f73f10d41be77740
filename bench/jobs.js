// Time and memory of a run with one new e-mail beside a million that are done, and whose purchases the receipts remember:
// node bench/jobs.js [items]. Needs npm run build.
import { createHmac } from "node:crypto";
import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLI, configFile } from "./candidates.js";
import { measure } from "./measure.js";

const count = Number(process.argv[2] ?? 1_000_000);
const SALT = "bench";
const DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"];
const folder = mkdtempSync(join(tmpdir(), "bench-jobs-"));
const path = (name) => join(folder, name);

const emails = Array.from({ length: count }, (_, nth) => `name${nth}@example.com`);
const digest = (email) => createHmac("sha256", SALT).update(email).digest().toString("base64url", 0, 12);
const digestsOf = (nth) => emails.filter((_, at) => at % DAYS.length === nth).map(digest);
const done = DAYS.map((day, nth) => [day, digestsOf(nth).join("")]);

/** The receipts of all items, as they are after they were compacted. */
function writeReceipts(path) {
  writeFileSync(path, `${JSON.stringify({ receipts: 2, service: {}, salt: SALT, normalization: 1 })}\n`);
  let nth = 0;
  for (const [day, packed] of done) {
    const lines = packed.match(/.{16}/g).map((item) => {
      const receipt = { sealed: "x".repeat(128), sure: true, at: `${day}T10:00:00.000Z` };
      const handle = { id: `AbCdEfGh.${nth++}`, day, ...receipt };
      return `${JSON.stringify({ for: "emailVerification", items: [{ item, day, handle }] })}\n`;
    });
    appendFileSync(path, lines.join(""));
  }
  appendFileSync(path, `${JSON.stringify({ compacted: statSync(path).size })}\n`);
}

const server = createServer((request, response) => {
  request.resume();
  const isPost = request.method === "POST";
  const answer = isPost ? { success: true } : { success: false, error: { code: "JOB_NOT_FOUND" } };
  response.writeHead(isPost ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(answer));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}`;

const [ledger, stream] = [{ salt: SALT, normalization: 1, jobs: [], done }, "email_verifications"];
const state = { version: 2, verified_at: null, ...ledger, older: [], spent: [], prices: [], inputs: [] };
writeFileSync(path("emails.txt"), [...emails, "new@example.com"].join("\n"));
writeFileSync(path("state.json"), JSON.stringify({ bookmarks: { [stream]: state } }));
writeReceipts(path("receipts.jsonl"));
const config = configFile({
  ...{ base_url: url, receipts_file: path("receipts.jsonl") },
  external_api: { api_url: url, api_key: "svc_0badc0de_0123456789abcdef0123456789abcdef" },
  email_verification: { emails_file: path("emails.txt") },
});
const words = ["read", "--stream", stream, "--config", config, "--state", path("state.json")];
const { seconds, cpu, peakMiB, bytes } = await measure([process.execPath, CLI, ...words]);
const [stateBytes, receiptsBytes] = ["state.json", "receipts.jsonl"].map((name) => statSync(path(name)).size);
const megabytes = (size) => (size / 1e6).toFixed(1);
console.log(
  `${count} finished items, 1 new: ${seconds.toFixed(1)} s (${cpu.toFixed(1)} s of processor), ${Math.round(peakMiB)} MiB; ` +
    `state ${megabytes(stateBytes)} MB, receipts ${megabytes(receiptsBytes)} MB, output ${megabytes(bytes)} MB`,
);
rmSync(folder, { recursive: true });
server.close();
