import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { FAILURES } from "../../../../src/service/error-table.ts";
import type { Dice } from "../dice.ts";
import { anyValue, bent, mutated, NAMES } from "../hostile.ts";
import { junk, parsed } from "../rows.ts";
import { environmentOf, runAndJudge } from "../run.ts";
import { type Answer, faithful, HEADERS, openTarget, type Request, type Target } from "../service.ts";
import { CANARY } from "../verdict.ts";

/** Answers to every kind of request, changed, damaged and refused, while a command runs. */
export const answers = (): Promise<Target> =>
  openTarget((service, folder) => async (dice) => {
    const counts = { given: 0, sound: 0, hopeless: 0 };
    const share = dice.pick([0, 0.05, 0.2, 0.5, 1]);
    service.answer = (request, response) => {
      const answer = faithful(request);
      counts.given += 1;
      if (!dice.chance(share)) {
        counts.sound += 1;
        response.writeHead(answer.status, HEADERS).end(answer.text);
      } else if (spoil(dice, request, answer, response)) counts.hopeless += 1;
    };
    const buysJobs = dice.chance(0.3);
    const settings = {
      ...{ RECEIPTS_FILE: "", EXTERNAL_API__API_URL: service.url },
      EXTERNAL_API__API_KEY: "svc_0a1b2c3d_ffeeddccbbaa99887766554433221100",
      COMPANY_LOOKUP__DOMAINS: '["example.com"]',
      EMAIL_CHECK__EMAILS: '["a@example.com"]',
      EMAIL_VERIFICATION__EMAILS: '["b@example.com"]',
    };
    const line = dice.pick(COMMANDS);
    const environment = environmentOf(service.url, folder, buysJobs ? settings : {});
    const { succeeded, said } = await runAndJudge(line, environment);
    // A job that is not found says that the key may ask for jobs.
    if (succeeded && !buysJobs && counts.given === counts.hopeless)
      throw new Error(`${line} succeeds, and no answer was of use: ${said.slice(-2_000)}`);
    if (!succeeded && counts.given === counts.sound)
      throw new Error(`${line} fails, and every answer was sound: ${said.slice(-2_000)}`);
    return counts.given;
  });

const COMMANDS: readonly string[] = [
  ...["connector check", "connector check --exit-code", "connector read --format airbyte", "tap --test"],
  ...["people", "companies", "sources"].map((name) => `connector read --format airbyte --stream ${name}`),
  ...["connector read --format jsonl --stream people", "connector discover", "connector discover"],
  ...["tap", "tap", "tap --discover", "connector plan --shards 3"],
];

/** Answers with something else. Returns whether nothing of it is of use. */
function spoil(dice: Dice, request: Request, answer: Answer, response: ServerResponse): boolean {
  if (dice.chance(0.05)) {
    // What no HTTP library sends.
    const raw = dice.pick(RAW);
    if (raw === "") response.destroy();
    else response.socket?.end(Buffer.from(raw, "latin1"));
    return false;
  }
  const said = oddText(dice, request, answer);
  const plain = dice.chance(0.1) ? bent(Buffer.from(said), dice) : Buffer.from(said);
  const encoding = dice.pick(["", "", "", "", "gzip", "GZIP", "x-gzip", "br", "identity", "gzip, gzip"]);
  const zipped = encoding !== "" && dice.chance(0.8) ? gzipSync(plain, { level: 1 }) : plain;
  const body = dice.chance(0.05) ? bent(zipped, dice) : zipped;
  const status = dice.chance(0.6) ? answer.status : dice.pick(STATUSES);
  const odd = Object.entries(ODD_HEADERS).filter(() => dice.chance(0.2));
  response.writeHead(status, {
    ...HEADERS,
    ...(encoding !== "" && { "content-encoding": encoding }),
    ...Object.fromEntries(odd.map(([name, values]) => [name, dice.pick(values)])),
  });
  if (dice.chance(0.05))
    response.write(body.subarray(0, dice.below(body.length + 1)), () => response.destroy());
  else response.end(body);
  return (
    status !== 200 ||
    (encoding === "" && !request.path.endsWith("/stream") && typeof parsed(body.toString()) !== "object")
  );
}

function oddText(dice: Dice, { path }: Request, { text }: Answer): string {
  const way = dice.below(10);
  if (way === 0) return JSON.stringify(anyValue(dice)) ?? "";
  if (way === 1)
    return JSON.stringify({ success: false, error: { code: dice.pick(CODES), message: CANARY } });
  if (way === 2)
    return JSON.stringify({ status: "error", error_code: dice.pick(CODES), message: CANARY, contacts: [] });
  if (way === 3) return junk(dice, "id");
  const lines = path.endsWith("/stream") ? text.split("\n").filter((line) => line !== "") : [text];
  return lines
    .map((line) => JSON.stringify(mutated(JSON.parse(line), dice, dice.pick([0.01, 0.06]))))
    .join("\n");
}

const STATUSES = [
  200, 201, 204, 301, 307, 400, 401, 403, 404, 407, 408, 413, 418, 422, 423, 429, 500, 503, 599,
];
const CODES = [...Object.keys(FAILURES), ...NAMES, "x".repeat(500), ...Array<string>(40).fill(CANARY)];
const ODD_HEADERS: Readonly<Record<string, readonly string[]>> = {
  date: ["x", "Thu, 01 Jan 1970 00:00:00 GMT", "", "9999999999999999"],
  "retry-after": ["-1", "1e9", "x", "", "99999999999999999999", "Infinity"],
  location: ["/x", "http://[", "javascript:alert(1)", "//evil.example.com/x"],
  "x-long": ["x", "x".repeat(20_000)],
};
const RAW = [
  "",
  "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
  "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
  "HTTP/1.1 200 OK\r\nX: \x00\x1b[2J\xff\r\n\r\n{}",
  `<html>${CANARY}</html>`,
  'HTTP/1.0 200 OK\r\n\r\n{"success":true,"data":[],"pagination":{"total":0}}',
];
