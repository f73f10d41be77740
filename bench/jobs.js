// Size and speed of a run with one new e-mail beside a million that are done, and whose purchases the receipts remember:
// node bench/jobs.js [items] [--without-receipts] [--singer]. Needs npm run build.

import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const args = process.argv.slice(2);
const count = Number(args.find((arg) => /^\d+$/.test(arg)) ?? 1_000_000);
const hasReceipts = !args.includes("--without-receipts");
const isSinger = args.includes("--singer");
const SALT = "bench";
const KEY = "svc_0badc0de_0123456789abcdef0123456789abcdef";
const DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"];
const NAME = isSinger ? "tap-contact-intelligence" : "source-contact-intelligence";
const PROGRAM = fileURLToPath(new URL(`../dist/${NAME}.js`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "bench-jobs-"));

const digest = (email) => createHmac("sha256", SALT).update(email).digest().toString("base64url", 0, 12);
const emails = Array.from({ length: count }, (_, nth) => `name${nth}@example.com`);
const done = DAYS.map((day, nth) => [
  day,
  emails
    .filter((_, at) => at % DAYS.length === nth)
    .map(digest)
    .join(""),
]);
/** The receipts of all items, as they are after they were compacted. */
function writeReceipts(path) {
  writeFileSync(path, `${JSON.stringify({ receipts: 2, service: {}, salt: SALT, normalization: 1 })}\n`);
  let nth = 0;
  for (const [day, packed] of done) {
    const lines = [];
    for (let at = 0; at < packed.length; at += 16) {
      const item = packed.slice(at, at + 16);
      const handle = {
        id: `AbCdEfGh.${nth++}`,
        day,
        sealed: "x".repeat(128),
        sure: true,
        at: `${day}T10:00:00.000Z`,
      };
      lines.push(`${JSON.stringify({ for: "emailVerification", items: [{ item, day, handle }] })}\n`);
    }
    appendFileSync(path, lines.join(""));
  }
  const compacted = statSync(path).size;
  appendFileSync(path, `${JSON.stringify({ compacted })}\n`);
}
const ledger = { salt: SALT, normalization: 1, jobs: [], done };
const state = { version: 2, verified_at: null, ...ledger, older: [], spent: [], prices: [], inputs: [] };

const stream = "email_verifications";
const metadata = [{ breadcrumb: [], metadata: { selected: true } }];
const schema = { type: "object", properties: {} };
const catalog = { streams: [{ tap_stream_id: stream, stream, schema, key_properties: ["email"], metadata }] };

const server = createServer((request, response) => {
  request.resume();
  const isPost = request.method === "POST";
  const answer = isPost ? { success: true } : { success: false, error: { code: "JOB_NOT_FOUND" } };
  response.writeHead(isPost ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(answer));
});
server.listen(0, "127.0.0.1", async () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const path = (name) => join(folder, name);
  writeFileSync(path("emails.txt"), [...emails, "new@example.com"].join("\n"));
  writeFileSync(path("state.json"), JSON.stringify({ bookmarks: { email_verifications: state } }));
  writeFileSync(path("catalog.json"), JSON.stringify(catalog));
  writeFileSync(
    path("config.json"),
    JSON.stringify({
      base_url: url,
      api_key: KEY,
      receipts_file: path("receipts.jsonl"),
      external_api: { api_url: url, api_key: KEY },
      email_verification: { emails_file: path("emails.txt") },
    }),
  );
  if (hasReceipts) writeReceipts(path("receipts.jsonl"));
  const receiptsBytes = hasReceipts ? statSync(path("receipts.jsonl")).size : 0;
  const began = performance.now();
  const words = [
    ...(isSinger ? ["--catalog", path("catalog.json")] : ["read", "--stream", stream]),
    ...["--config", path("config.json"), "--state", path("state.json")],
  ];
  const child = spawn("/usr/bin/env", ["time", "-f", "%U %S %M", process.execPath, PROGRAM, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let bytes = 0;
  let records = 0;
  child.stdout.on("data", (chunk) => {
    bytes += chunk.length;
    records += chunk.toString("latin1").split('"type":"RECORD"').length - 1;
  });
  let stderr = "";
  child.stderr.on("data", (chunk) => (stderr += chunk));
  child.on("close", (code) => {
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const [user = 0, system = 0, kilobytes = 0] = (stderr.trim().split("\n").at(-1) ?? "")
      .split(" ")
      .map(Number);
    const memory = Math.round(kilobytes / 1024);
    console.log(
      `${count} finished items, 1 new: exit ${code}, ${records} record, ${seconds} s (${(user + system).toFixed(1)} s of processor), ${memory} MB of memory`,
    );
    console.log(
      `state: ${(statSync(path("state.json")).size / 1e6).toFixed(1)} MB; receipts: ${(receiptsBytes / 1e6).toFixed(0)} MB; all output: ${(bytes / 1e6).toFixed(1)} MB`,
    );
    rmSync(folder, { recursive: true });
    server.close();
  });
});
