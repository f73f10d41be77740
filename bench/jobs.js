// Time and memory of a run with one new e-mail where 100,000 are finished and in the receipts:
// node bench/jobs.js [items]. Needs npm run build.
import { createHash, createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configFile, programOf } from "./candidates.js";
import { measure } from "./measure.js";

const count = Number(process.argv[2] ?? 100_000);
const DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"];
const folder = mkdtempSync(join(tmpdir(), "bench-jobs-"));
const path = (name) => join(folder, name);

const server = createServer((request, response) => {
  request.resume();
  const isPost = request.method === "POST";
  const answer = isPost ? { success: true } : { success: false, error: { code: "JOB_NOT_FOUND" } };
  response.writeHead(isPost ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(answer));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}`;

const address = createHash("sha256").update(url).digest("hex").slice(0, 16);
const key = createHmac("sha256", "").update(`jobs\n${address}`).digest("base64url");
const salt = createHash("sha256").update(key).digest("base64url").slice(0, 16);
const emails = Array.from({ length: count }, (_, nth) => `name${nth}@example.com`);
const items = emails.map((email) => createHmac("sha256", key).update(email).digest("base64url").slice(0, 16));
const delivered = DAYS.map((day, nth) => [day, items.filter((_, at) => at % DAYS.length === nth).join("")]);

/** The receipts of all items, as a run writes them. */
const receipts = items.map((item, nth) => {
  const day = DAYS[nth % DAYS.length];
  const made = { id: `AbCdEfGh.${nth}`, at: Date.parse(day), sync: "AbCdEfGh", step: "answered" };
  const subs = [{ ...made, sealed: "x".repeat(128) }];
  return `${JSON.stringify({ for: "emailVerification", items: [[item, { day, subs }]] })}\n`;
});
const header = `${JSON.stringify({ receipts: 3, salt: { emailVerification: salt } })}\n`;
const stream = "email_verifications";
const lists = { items: [], delivered, spent: [], prices: [], inputs: [] };
const state = { version: 4, verified_at: null, salt, generation: null, ...lists };
writeFileSync(path("emails.txt"), [...emails, "new@example.com"].join("\n"));
writeFileSync(path("state.json"), JSON.stringify({ bookmarks: { [stream]: state } }));
writeFileSync(path("receipts.jsonl"), header + receipts.join(""));
const config = configFile({
  ...{ base_url: url, receipts_file: path("receipts.jsonl") },
  external_api: { api_url: url, api_key: "svc_0badc0de_0123456789abcdef0123456789abcdef" },
  email_verification: { emails_file: path("emails.txt") },
});
const words = ["read", "--stream", stream, "--config", config, "--state", path("state.json")];
const { seconds, cpu, peakMiB, bytes } = await measure([process.execPath, programOf(), ...words]);
const [stateBytes, receiptsBytes] = ["state.json", "receipts.jsonl"].map((name) => statSync(path(name)).size);
if (readFileSync(path("receipts.jsonl"), "latin1").split('"sealed"').length <= count)
  throw new Error("The run dropped a part of the receipts: they are not of its format");
const megabytes = (size) => (size / 1e6).toFixed(1);
console.log(
  `${count} finished items, 1 new: ${seconds.toFixed(1)} s (${cpu.toFixed(1)} s of processor), ${Math.round(peakMiB)} MiB; ` +
    `state ${megabytes(stateBytes)} MB, receipts ${megabytes(receiptsBytes)} MB, output ${megabytes(bytes)} MB`,
);
rmSync(folder, { recursive: true });
server.close();
