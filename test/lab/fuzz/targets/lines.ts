import { writeFileSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Dice } from "../dice.ts";
import { bent } from "../hostile.ts";
import { canonical, DAYS, judgeLine, junk, oddRow, type Rules, SALT, UNCHANGED } from "../rows.ts";
import { type Asked, environmentOf, read, runAndJudge, tap } from "../run.ts";
import {
  Account,
  type Collection,
  HEADERS,
  type Held,
  identityOf,
  KEY_NAMES,
  openTarget,
  type Target,
} from "../service.ts";
import { FORBIDDEN, refusePrivate, type Verdict } from "../verdict.ts";

/** What a run must come to. `unknown`: damage that nobody can see may stand in what was delivered. */
type Expected = "complete" | "unknown";

/** How a run asks for the rows, and what is to become of them. */
type Way = Asked & {
  readonly settings: Readonly<Record<string, string>>;
  readonly rules: Rules;
  readonly output?: string;
};

/** Bodies of up to thousands of lines, through a socket and a run to its output, each line judged apart. */
export const lines = (): Promise<Target> =>
  openTarget((service, folder) => {
    const catalog = join(folder, "catalog.json");
    writeFileSync(catalog, JSON.stringify(CATALOG));
    return async (dice) => {
      const collection: Collection = dice.chance(0.8) ? "people" : "companies";
      const way = wayOf(dice, collection, folder, catalog);
      const isSick = collection === "people" && dice.chance(0.07);
      const mayRepeat = !isSick && dice.chance(0.03);
      const account = new Account(collection, heldOf(dice, collection, way.rules, isSick, mayRepeat), isSick);
      const exports = new Exports(
        account,
        dice,
        isSick || mayRepeat || dice.chance(0.7) ? 0 : 1 + dice.below(2),
      );
      service.answer = ({ path, query }, response) => {
        const base = `/api/v1/public/${collection}`;
        if (path === `${base}/stream`) exports.answer(account.exported(query), response);
        else if (path.endsWith("/stream")) response.writeHead(200, HEADERS).end();
        else {
          const shown = path === base ? account : new Account("sources", []);
          response.writeHead(200, HEADERS).end(Buffer.from(shown.list(query), "latin1"));
        }
      };
      const isClean = !isSick && !mayRepeat && exports.damaged === 0;
      // Damage is followed by waits, which a real clock takes.
      const isApart = isClean && dice.chance(0.03);
      const verdict = await runAndJudge(way, environmentOf(service.url, folder, way.settings), isApart);
      const isKnown = !isSick && !mayRepeat && !exports.isHidden && !exports.isScrambled;
      await compare(verdict, way, account, exports, isKnown ? "complete" : "unknown");
      return account.held.length;
    };
  });

const NAMED = ["id", "discoveredAt", "firstName", "email", "companySize"];
/** Names some fields of people, as an older catalog does: the others may not leave, nor the one that is not selected. */
const CATALOG = {
  streams: [
    {
      ...{ tap_stream_id: "people", stream: "people", key_properties: ["id"] },
      schema: { type: "object", properties: Object.fromEntries(NAMED.map((name) => [name, {}])) },
      metadata: [
        { breadcrumb: [], metadata: { selected: true, "replication-method": "INCREMENTAL" } },
        { breadcrumb: ["properties", "email"], metadata: { selected: false } },
      ],
    },
  ],
};

let folders = 0;

function wayOf(dice: Dice, collection: Collection, folder: string, catalog: string): Way {
  const stream = ["--stream", collection];
  const keyed = [KEY_NAMES[collection], "discoveredAt"];
  const privately = (setting: string, fields: readonly string[], rules: Partial<Rules>): Way => ({
    ...read(dice.pick(["airbyte", "jsonl"]), ...stream),
    settings: { [setting]: JSON.stringify(fields), HASH_SALT: SALT },
    rules: { ...UNCHANGED, ...rules },
  });
  const fields = dice.pick([["email"], ["firstName", "sources"], ["companySize", "industry"]]);
  const way = dice.below(100);
  if (way < 25) return { ...read("airbyte", ...stream), settings: {}, rules: UNCHANGED };
  if (way < 45) return { ...read("jsonl", ...stream), settings: {}, rules: UNCHANGED };
  if (way < 57) return privately("DROP_FIELDS", fields, { leaves: (name) => !fields.includes(name) });
  if (way < 69) return privately("HASH_FIELDS", fields, { hashed: new Set(fields), isForFlat: true });
  if (way < 76)
    return privately("ONLY_FIELDS", fields, {
      isForFlat: true,
      leaves: (name) => fields.includes(name) || keyed.includes(name),
    });
  if (way < 79) {
    const output = join(folder, `output-${folders++}`);
    const words = ["--output", output, ...dice.pick([[], ["--compress", "gzip"]])];
    return {
      ...read("jsonl", ...stream, ...words),
      language: "text",
      settings: {},
      rules: UNCHANGED,
      output,
    };
  }
  const rules = { ...UNCHANGED, nul: "\ufffd" };
  if (way < 90 && collection === "people") {
    const leaves = (name: string): boolean => NAMED.includes(name) && name !== "email";
    return { ...tap("--catalog", catalog), settings: {}, rules: { ...rules, leaves } };
  }
  return { ...tap(), settings: {}, rules };
}

/** Lines that a healthy service could hold, or some among them that no reader can take. */
function heldOf(
  dice: Dice,
  collection: Collection,
  rules: Rules,
  isSick: boolean,
  mayRepeat: boolean,
): Held[] {
  const key = KEY_NAMES[collection];
  const size = 1 + dice.below(isSick ? 60 : dice.pick([4, 60, 60, 1_000, 8_000]));
  const isForbidden = (name: string): boolean =>
    name !== key && name !== "discoveredAt" && (!rules.leaves(name) || rules.hashed.has(name));
  const held: Held[] = [];
  const keys = new Set<string>();
  for (let nth = 0; held.length < size; nth++) {
    const row = oddRow(dice, nth, key, isForbidden);
    const judged = judgeLine(row.text, key);
    if (judged.kind !== "row" || judged.key === "" || row.text.includes("\n")) continue;
    // Objects are hashed as JSON, and keep the fields that are named within them.
    if (rules.isForFlat === true && /.\{|true|false/s.test(row.text)) continue;
    // A service has one row of a key. One that has several contradicts itself, and a run may say so.
    if (keys.has(judged.key) && !mayRepeat) continue;
    keys.add(judged.key);
    held.push({ ...row, judged });
  }
  if (dice.chance(0.3)) held.push(...held.slice(0, dice.below(20)));
  for (let times = isSick ? 1 + dice.below(3) : 0; times > 0; times--) {
    const text = junk(dice, key);
    held.splice(dice.below(held.length + 1), 0, { text, day: dice.pick(DAYS), judged: judgeLine(text, key) });
  }
  return held;
}

/** After which part of the bytes a body ends, how, and whether they are bent. */
type Cut = { readonly part?: number; readonly isReset?: boolean; readonly isBent?: boolean };

/** The exports of one case: packed, in pieces of odd sizes, the first of them damaged; and every body that was sent so. */
class Exports {
  /** How many exports are damaged before the first that is not. */
  readonly damaged: number;
  /** Lines of damaged bodies. */
  readonly sent: string[] = [];
  /** Whether damage may have passed for rows. */
  isHidden = false;
  /** Whether what came out of a bent gzip may have been handed on before its check sum was wrong. */
  isScrambled = false;
  readonly #dice: Dice;
  readonly #key: string;
  readonly #separator: string;
  #count = 0;

  constructor({ collection }: Account, dice: Dice, damaged: number) {
    this.#dice = dice;
    this.#key = KEY_NAMES[collection];
    this.#separator = dice.pick(["\n", "\n", "\r\n", "\n\n", "\n \n"]);
    this.damaged = damaged;
  }

  answer(rows: readonly string[], response: ServerResponse): void {
    this.#count += 1;
    if (this.#count > this.damaged || rows.length === 0) this.#send(this.#bytes(rows), response);
    else this.#damage([...rows], response);
  }

  #bytes(rows: readonly string[]): Buffer {
    const dice = this.#dice;
    const text = rows.join(this.#separator) + (dice.chance(0.7) ? this.#separator : "");
    return Buffer.from(dice.chance(0.1) ? `\xef\xbb\xbf${text}` : text, "latin1");
  }

  #damage(rows: string[], response: ServerResponse): void {
    const dice = this.#dice;
    const send = (bytes: Buffer, how: Cut = {}): void => {
      const text = bytes.toString("latin1").replace(/^\xef\xbb\xbf/, "");
      this.sent.push(...text.split("\n").map((line) => line.replace(/\r$/, "")));
      this.#send(bytes, response, how);
    };
    const way = dice.below(8);
    if (way < 3) {
      for (let times = dice.chance(0.05) ? 1_100 : 1 + dice.below(5); times > 0; times--)
        rows.splice(dice.below(rows.length + 1), 0, junk(dice, this.#key));
      send(this.#bytes(rows));
    } else if (way < 5) send(this.#bytes(rows), { part: dice.next(), isReset: way === 3 });
    else if (way === 5) {
      this.isScrambled = true;
      send(this.#bytes(rows), { isBent: true });
    } else if (way === 6) {
      this.isHidden = true;
      send(bent(this.#bytes(rows), dice));
    } else {
      const status = dice.pick([200, 429, 500, 503]);
      this.isHidden ||= status === 200;
      const body = dice.pick(["", "<html>", '{"a":1}', junk(dice, this.#key)]);
      this.sent.push(body);
      response.writeHead(status, { ...HEADERS, "retry-after": "1" }).end(body);
    }
  }

  #send(
    plain: Buffer,
    response: ServerResponse,
    {
      part = 1,
      isReset = false,
      isBent = false,
    }: { part?: number; isReset?: boolean; isBent?: boolean } = {},
  ): void {
    const dice = this.#dice;
    const zip = (from: number, to: number): Buffer => gzipSync(plain.subarray(from, to), { level: 1 });
    const middle = dice.below(plain.length + 1);
    const isZipped = isBent || dice.chance(0.5);
    const members = dice.chance(0.5) ? [zip(0, plain.length)] : [zip(0, middle), zip(middle, plain.length)];
    const packed = isZipped ? Buffer.concat(members) : plain;
    const whole = isBent ? bent(packed, dice) : packed;
    const sent = whole.subarray(0, Math.floor(part * whole.length));
    const coding = { "content-encoding": dice.pick(["gzip", "GZIP", "x-gzip"]) };
    response.writeHead(200, { ...HEADERS, "content-type": "application/x-ndjson", ...(isZipped && coding) });
    // Cut at odd places, within characters and escapes too; each piece arrives as one.
    const usual = dice.pick([3, 100, 5_000, 60_000]) + Math.floor(sent.length / 60);
    for (let at = 0, size = 0; at < sent.length; at += size) {
      size = 1 + dice.below(usual);
      response.write(sent.subarray(at, at + size));
    }
    if (isReset) response.write("", () => response.destroy());
    else response.end();
  }
}

/** Every record is a line that was sent, less what may not leave; none comes twice; a complete run has brought every row. */
async function compare(
  verdict: Verdict,
  way: Way,
  account: Account,
  { sent, isScrambled }: Exports,
  expected: Expected,
): Promise<void> {
  if (expected === "complete" && !verdict.succeeded)
    throw new Error(`A run that could be complete failed: ${verdict.said.slice(-3_000)}`);
  const key = KEY_NAMES[account.collection];
  const rows = account.held.filter(({ judged }) => judged.kind === "row");
  const known = new Map(rows.map((held) => [canonical(held.text, way.rules), identityOf(held)]));
  for (const text of sent) {
    const judged = judgeLine(text, key);
    if (judged.kind === "row") known.set(canonical(text, way.rules), identityOf({ text, judged }));
  }
  const asTheyAre = { ...UNCHANGED, nul: way.rules.nul };
  const delivered = new Set<string>();
  const texts = new Set<string>();
  for (const raw of await recordsOf(verdict, way, account.collection)) {
    if (/[\r\n]|\xe2\x80[\xa8\xa9]|\xc2\x85/.test(raw))
      throw new Error(`A record on two lines: ${raw.slice(0, 500)}`);
    if (raw.includes(FORBIDDEN)) throw new Error(`A value that may not leave: ${raw.slice(0, 1_000)}`);
    const text = canonical(raw, asTheyAre);
    const identity = known.get(text);
    if (!isScrambled && identity === undefined)
      throw new Error(`A record that nobody sent: ${raw.slice(0, 1_000)}`);
    if (texts.has(text) && expected === "complete")
      throw new Error(`A record that comes twice: ${raw.slice(0, 500)}`);
    texts.add(text);
    if (identity !== undefined) delivered.add(identity);
  }
  const lost = rows.find((held) => !delivered.has(identityOf(held)));
  if (expected === "complete" && lost !== undefined)
    throw new Error(`A row that was not delivered: ${lost.text.slice(0, 1_000)}`);
}

async function recordsOf({ records }: Verdict, way: Way, collection: string): Promise<readonly string[]> {
  if (way.output === undefined) {
    const all = [...records.values()].flat();
    const mine = records.get(way.language === "jsonl" ? "" : collection) ?? [];
    if (mine.length !== all.length) throw new Error("Records of a stream that has no rows");
    return mine;
  }
  refusePrivate("The state", await readFile(join(way.output, "state.json"), "utf8").catch(() => ""));
  // A stream without dates has a folder for each time that it is read.
  const entries = await readdir(join(way.output, collection), { recursive: true, withFileTypes: true }).catch(
    () => [],
  );
  const texts = entries
    .filter((entry) => entry.isFile())
    .map(async ({ parentPath, name }) => {
      const bytes = await readFile(join(parentPath, name));
      return (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("latin1");
    });
  const all = (await Promise.all(texts)).flatMap((text) => text.split("\n").slice(0, -1));
  await rm(way.output, { recursive: true, force: true });
  return all;
}
