import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { FAILURES } from "../../../../src/api/error-table.ts";
import { CANARY } from "../canary.ts";
import { type Asked, checkWith, discoverWith, readWith, tapWith } from "../commands.ts";
import type { Dice } from "../dice.ts";
import { anyValue, bent, mutated, NAMES } from "../hostile.ts";
import { LineMaker } from "../line.ts";
import { environmentOf, play } from "../play.ts";
import { HEADERS, type Request } from "../service.ts";
import { type Answer, faithful } from "../small-service.ts";
import { openTarget, type Target } from "../target.ts";
import { judgeEnded } from "../verdict.ts";

/** Answers to every kind of request, changed, damaged and refused, while a command runs. */
export const answers = (): Promise<Target> =>
  openTarget((service, folder) => async (dice) => {
    const spoiler = new Spoiler(dice);
    service.answer = (request, response) => spoiler.answer(request, response);
    const { language, command, alwaysZero } = askedFor(dice);
    const buysJobs = dice.chance(0.3);
    const environment = { ...environmentOf(service.url, folder), ...(buysJobs && jobsAt(service.url)) };
    const verdict = judgeEnded(language, await play(command, environment), alwaysZero);
    // A job that is not found says that the key may ask for jobs.
    if (verdict.succeeded && !buysJobs && spoiler.given === spoiler.hopeless) {
      throw new Error(`${command.kind} succeeds, and no answer was of use: ${verdict.said.slice(-2_000)}`);
    }
    if (!verdict.succeeded && spoiler.given === spoiler.sound) {
      throw new Error(`${command.kind} fails, and every answer was sound: ${verdict.said.slice(-2_000)}`);
    }
    return spoiler.given;
  });

/** Settings of all jobs. Nothing is kept of what they buy. */
const jobsAt = (url: string): Record<string, string> =>
  Object.fromEntries(
    Object.entries({
      RECEIPTS_FILE: "",
      EXTERNAL_API__API_URL: url,
      EXTERNAL_API__API_KEY: "svc_0a1b2c3d_ffeeddccbbaa99887766554433221100",
      COMPANY_LOOKUP__DOMAINS: '["example.com"]',
      EMAIL_CHECK__EMAILS: '["a@example.com"]',
      EMAIL_VERIFICATION__EMAILS: '["b@example.com"]',
    }).map(([name, value]) => [`CONTACT_INTELLIGENCE_${name}`, value]),
  );

function askedFor(dice: Dice): Asked {
  const way = dice.below(100);
  if (way < 25) return checkWith(undefined, dice.chance(0.5));
  if (way < 45) return readWith({ streams: [dice.pick(["people", "companies", "sources"])] });
  if (way < 55) return readWith({ streams: ["people"], format: "jsonl" });
  if (way < 65) return readWith({});
  if (way < 75) return discoverWith(undefined);
  if (way < 82) return tapWith({ mode: "discover" });
  if (way < 92) return tapWith({});
  if (way < 96) return tapWith({ mode: "test" });
  return { language: "text", command: { kind: "plan", config: undefined, stream: "people", shards: 3 } };
}

/** Gives answers, of which it spoils a share. */
class Spoiler {
  /** How many answers were given, how many as a healthy service gives them, and how many that say nothing of use. */
  given = 0;
  sound = 0;
  hopeless = 0;
  readonly #dice: Dice;
  readonly #share: number;

  constructor(dice: Dice) {
    this.#dice = dice;
    this.#share = dice.pick([0, 0.05, 0.2, 0.5, 1]);
  }

  answer(request: Request, response: ServerResponse): void {
    this.given += 1;
    const answer = faithful(request);
    if (this.#dice.chance(this.#share)) {
      this.#spoilt(request, answer, response);
      return;
    }
    this.sound += 1;
    response.writeHead(answer.status, HEADERS).end(answer.text);
  }

  #spoilt(request: Request, answer: Answer, response: ServerResponse): void {
    const dice = this.#dice;
    if (dice.chance(0.05)) {
      this.#raw(response);
      return;
    }
    const text = this.#textOf(request, answer);
    const plain = dice.chance(0.1) ? bent(Buffer.from(text), dice) : Buffer.from(text);
    const encoding = dice.pick(["", "", "", "", "gzip", "GZIP", "x-gzip", "br", "identity", "gzip, gzip"]);
    const zipped = encoding !== "" && dice.chance(0.8) ? gzipSync(plain, { level: 1 }) : plain;
    const body = dice.chance(0.05) ? bent(zipped, dice) : zipped;
    const status = dice.chance(0.6) ? answer.status : dice.pick(STATUSES);
    if (status !== 200 || (encoding === "" && !isOfUse(request, body))) this.hopeless += 1;
    response.writeHead(status, {
      ...HEADERS,
      ...(encoding !== "" && { "content-encoding": encoding }),
      ...oddHeaders(dice),
    });
    if (dice.chance(0.05))
      response.write(body.subarray(0, dice.below(body.length + 1)), () => response.destroy());
    else response.end(body);
  }

  #textOf(request: Request, { text }: Answer): string {
    const dice = this.#dice;
    const way = dice.below(10);
    if (way === 0) return JSON.stringify(anyValue(dice)) ?? "";
    if (way === 1)
      return JSON.stringify({ success: false, error: { code: dice.pick(CODES), message: CANARY } });
    if (way === 2)
      return JSON.stringify({ status: "error", error_code: dice.pick(CODES), message: CANARY, contacts: [] });
    if (way === 3) return new LineMaker(dice, "id").junk();
    if (!request.path.endsWith("/stream"))
      return JSON.stringify(mutated(JSON.parse(text), dice, dice.pick([0.01, 0.06])));
    const lines = text.split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.stringify(mutated(JSON.parse(line), dice, 0.06))).join("\n");
  }

  /** What no HTTP library sends. */
  #raw(response: ServerResponse): void {
    const { socket } = response;
    const text = this.#dice.pick(RAW);
    if (socket === null || text === "") response.destroy();
    else socket.end(Buffer.from(text, "latin1"));
  }
}

/** Whether a body is of the form that was asked for. */
function isOfUse({ path }: Request, body: Buffer): boolean {
  if (path.endsWith("/stream")) return true;
  try {
    return typeof JSON.parse(body.toString("utf8")) === "object";
  } catch {
    return false;
  }
}

const STATUSES = [
  200, 201, 202, 204, 301, 307, 400, 401, 403, 404, 407, 408, 413, 418, 422, 423, 429, 500, 502, 503, 599,
];
const CODES = [...Object.keys(FAILURES), ...NAMES, "x".repeat(500), CANARY, "ODD_CODE"];

const ODD_HEADERS: Readonly<Record<string, readonly [chance: number, values: readonly string[]]>> = {
  date: [0.2, ["x", "Thu, 01 Jan 1970 00:00:00 GMT", "", "9999999999999999"]],
  "retry-after": [0.3, ["-1", "1e9", "x", "", "99999999999999999999", "Infinity"]],
  location: [0.3, ["/x", "http://[", "javascript:alert(1)", "//evil.example.com/x"]],
  "x-long": [0.05, ["x".repeat(20_000)]],
};

function oddHeaders(dice: Dice): Record<string, string> {
  const sent = Object.entries(ODD_HEADERS).filter(([, [chance]]) => dice.chance(chance));
  return Object.fromEntries(sent.map(([name, [, values]]) => [name, dice.pick(values)]));
}

const RAW: readonly string[] = [
  "",
  "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}",
  'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"success":true}',
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
  "HTTP/1.1 99999 X\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
  "HTTP/1.1 200 OK\r\nX: \x00\x1b[2J\xff\r\n\r\n{}",
  "HTTP/9.9 200 OK\r\n\r\n",
  `<html>${CANARY}</html>`,
  `${CANARY}\r\n\r\n`,
  "HTTP/1.1 200 OK\r\n\r\n",
  'HTTP/1.0 200 OK\r\n\r\n{"success":true,"data":[],"pagination":{"total":0}}',
];
