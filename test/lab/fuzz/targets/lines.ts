import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Ended } from "../../../support/run.ts";
import { FORBIDDEN, refusePrivate } from "../canary.ts";
import { type Asked, readWith, tapWith } from "../commands.ts";
import type { Dice } from "../dice.ts";
import { anyPacking, bytesOf, type Packing, sendExport } from "../export-body.ts";
import { bent } from "../hostile.ts";
import { canonical, type Judged, judgeLine } from "../judge.ts";
import { DAYS, LineMaker } from "../line.ts";
import { environmentOf, play, playApart } from "../play.ts";
import {
  Account,
  type Collection,
  daysOf,
  HEADERS,
  type Held,
  identityOf,
  KEY_NAMES,
  listText,
  type Request,
} from "../service.ts";
import { openTarget, type Target } from "../target.ts";
import { judgeEnded, type Verdict } from "../verdict.ts";

/** What a run must come to. `unknown`: damage that nobody can see may stand in what was delivered. */
type Expected = "complete" | "failed" | "unknown";

/** A body of lines, damaged or not, and what becomes of it. */
type Case = {
  readonly account: Account;
  readonly packing: Packing;
  /** How many exports are damaged before the first that is not. */
  readonly damaged: number;
  readonly expected: Expected;
};

/** How a run asks for the rows. */
type Way = Asked & {
  /** Fields whose values may not leave; `*`: those that nobody named. */
  readonly forbidden: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
  readonly output?: string;
  readonly nul?: string;
};

/** Bodies of up to thousands of lines, through a socket and a run to its output, each line judged apart. */
export const lines = (): Promise<Target> =>
  openTarget(async (service, folder) => {
    const catalog = join(folder, "catalog.json");
    await writeFile(catalog, JSON.stringify(CATALOG));
    return async (dice) => {
      const collection: Collection = dice.chance(0.8) ? "people" : "companies";
      const way = wayOf(dice, collection, { folder, catalog });
      const one = caseOf(dice, collection, way);
      const exports = new Exports(one, dice);
      service.answer = (request, response) => exports.answer(request, response);
      const environment = { ...environmentOf(service.url, folder), ...way.settings };
      // Damage is followed by waits, which a real clock takes.
      const isApart = one.damaged === 0 && one.expected === "complete" && dice.chance(0.03);
      const ended = await (isApart ? playApart : play)(way.command, environment);
      await check(ended, way, one, exports);
      return one.account.held.length + exports.made;
    };
  });

const FIELDS = ["firstName", "lastName", "email", "jobTitle", "companySize", "industry", "sources"];

/** Names some fields of people, as an older catalog does: the others may not leave. */
const CATALOG = {
  streams: [
    {
      tap_stream_id: "people",
      stream: "people",
      key_properties: ["id"],
      schema: {
        type: "object",
        properties: Object.fromEntries(
          ["id", "discoveredAt", "firstName", "email", "companySize"].map((name) => [name, {}]),
        ),
      },
      metadata: [
        { breadcrumb: [], metadata: { selected: true, "replication-method": "INCREMENTAL" } },
        { breadcrumb: ["properties", "email"], metadata: { selected: false } },
      ],
    },
  ],
};

let folders = 0;

function wayOf(dice: Dice, collection: Collection, at: { folder: string; catalog: string }): Way {
  const streams = [collection];
  const plain = { forbidden: [], settings: {} };
  const way = dice.below(100);
  if (way < 40) return { ...plain, ...readWith({ streams }) };
  if (way < 65) return { ...plain, ...readWith({ streams, format: "jsonl" }) };
  if (way < 75) {
    const forbidden = dice.pick([["email"], ["firstName", "sources"], ["companySize", "industry"]]);
    const setting = dice.pick(["DROP_FIELDS", "HASH_FIELDS"]);
    const settings = {
      [`CONTACT_INTELLIGENCE_${setting}`]: JSON.stringify(forbidden),
      CONTACT_INTELLIGENCE_HASH_SALT: "a long salt that nobody guesses",
    };
    return { ...readWith({ streams }), forbidden, settings };
  }
  if (way < 77) {
    const output = join(at.folder, `output-${folders++}`);
    const compress = dice.pick(["gzip", undefined] as const);
    return {
      ...plain,
      ...readWith({ streams, format: "jsonl", output, compress }),
      language: "text",
      output,
    };
  }
  if (way < 88 && collection === "people") {
    const forbidden = [...FIELDS.filter((name) => name !== "firstName" && name !== "companySize"), "*"];
    return { ...plain, ...tapWith({ catalog: at.catalog }), forbidden, nul: "\ufffd" };
  }
  return { ...plain, ...tapWith({}), nul: "\ufffd" };
}

/** Lines that a healthy service could hold, or some among them that no reader can take. */
function caseOf(dice: Dice, collection: Collection, { forbidden }: Way): Case {
  const maker = new LineMaker(dice, KEY_NAMES[collection], new Set(forbidden));
  const way = dice.below(100);
  const isSick = way >= 93 && collection === "people";
  const size = isSick ? 1 + dice.below(60) : 1 + dice.below(dice.pick([4, 60, 1_000, 5_000, 8_000]));
  // A service has one row of a key. One that has several contradicts itself, and a run may say so.
  const mayRepeat = way >= 90;
  const held: Held[] = [];
  const keys = new Set<string>();
  while (held.length < size) {
    const one = heldOf(maker, held.length, collection);
    if (keys.has(one.judged.key) && !mayRepeat) continue;
    keys.add(one.judged.key);
    held.push(one);
  }
  if (dice.chance(0.3)) held.push(...held.slice(0, dice.below(20)));
  const packing = anyPacking(dice);
  if (!isSick) {
    const damaged = way < 70 || mayRepeat ? 0 : 1 + dice.below(2);
    const expected = mayRepeat ? "unknown" : "complete";
    return { account: new Account(collection, held), packing, damaged, expected };
  }
  for (let times = 1 + dice.below(3); times > 0; times--) {
    const text = dice.chance(0.9) ? maker.junk() : maker.error();
    const judged = judgeLine(text, KEY_NAMES[collection]);
    if (judged.kind === "blank") continue;
    held.splice(dice.below(held.length + 1), 0, { text, day: dice.pick(DAYS), judged });
  }
  return { account: new Account(collection, held, true), packing, damaged: 0, expected: "unknown" };
}

type HeldRow = Held & { readonly judged: Extract<Held["judged"], { kind: "row" }> };

/** A row that the stream can take. What came out as none is made again, in a plainer way. */
function heldOf(maker: LineMaker, nth: number, collection: Collection): HeldRow {
  for (;;) {
    const line = maker.row(nth);
    const judged = judgeLine(line.text, KEY_NAMES[collection]);
    if (judged.kind !== "row" || judged.key === "" || line.text.includes("\n")) continue;
    return { ...line, judged };
  }
}

/** The answers of one case, and every body that was sent. */
class Exports {
  /** Lines that only damaged bodies held. */
  made = 0;
  /** What the connector may have seen of each damaged body. */
  readonly sent: Buffer[] = [];
  /** Whether damage may have passed for rows. */
  isHidden = false;
  /** Whether what came out of a bent gzip may have been handed on before its check sum was wrong. */
  isScrambled = false;
  readonly #case: Case;
  readonly #dice: Dice;
  #exports = 0;

  constructor(one: Case, dice: Dice) {
    this.#case = one;
    this.#dice = dice;
  }

  answer({ path, query }: Request, response: ServerResponse): void {
    const { account } = this.#case;
    const base = `/api/v1/public/${account.collection}`;
    if (path === `${base}/stream`) this.#export(query, response);
    else if (path.endsWith("/stream")) response.writeHead(200, HEADERS).end();
    else {
      const shown = path === base ? account : new Account("sources", []);
      response.writeHead(200, HEADERS).end(Buffer.from(listText(shown, query), "latin1"));
    }
  }

  #export(query: URLSearchParams, response: ServerResponse): void {
    const { account, packing, damaged } = this.#case;
    const rows = account.within(daysOf(query)).map(({ text }) => text);
    this.#exports += 1;
    if (this.#exports > damaged || rows.length === 0)
      sendExport(response, bytesOf(rows, packing), packing, this.#dice);
    else this.#damaged(rows, response);
  }

  #damaged(rows: string[], response: ServerResponse): void {
    const dice = this.#dice;
    const { account, packing } = this.#case;
    const maker = new LineMaker(dice, KEY_NAMES[account.collection]);
    const send = (texts: readonly string[], how: Partial<Packing> = {}): void => {
      const packed = { ...packing, ...how };
      const plain = bytesOf(texts, packed);
      this.sent.push(plain);
      sendExport(response, plain, packed, dice);
    };
    const way = dice.below(9);
    if (way < 3) {
      const junk = dice.chance(0.05) ? 1_100 : 1 + dice.below(5);
      this.made += junk;
      const more = Array.from({ length: junk }, () => maker.junk());
      for (const text of more) rows.splice(dice.below(rows.length + 1), 0, text);
      send(rows);
    } else if (way === 3) {
      this.made += 1;
      rows.splice(dice.below(rows.length + 1), dice.chance(0.5) ? rows.length : 0, maker.error());
      send(rows);
    } else if (way === 4) send(rows, { ends: { at: dice.next(), how: "reset" } });
    else if (way === 5) send(rows, { ends: { at: dice.next(), how: "short" } });
    else if (way === 6) {
      this.isScrambled = true;
      send(rows, { gzip: "bent" });
    } else if (way === 7 && this.#exports === 1) {
      const plain = bent(bytesOf(rows, packing), dice);
      this.sent.push(plain);
      this.isHidden = true;
      sendExport(response, plain, packing, dice);
    } else {
      const status = dice.pick([200, 429, 500, 503]);
      const body = dice.pick(["", "<html>", '{"a":1}', maker.error()]);
      response.writeHead(status, { ...HEADERS, "retry-after": "1" }).end(body);
      this.sent.push(Buffer.from(body));
      this.isHidden ||= status === 200;
    }
  }
}

/** Holds an ended run against what was sent. */
async function check(ended: Ended, way: Way, one: Case, exports: Exports): Promise<void> {
  const { account } = one;
  const verdict = judgeEnded(way.language, ended);
  const expected = exports.isHidden || exports.isScrambled ? "unknown" : one.expected;
  if (expected === "complete" && !verdict.succeeded) {
    throw new Error(`A run that could be complete failed: ${verdict.said.slice(-3_000)}`);
  }
  const raws = await recordsOf(verdict, way, account.collection);
  if (way.forbidden.length > 0) {
    if (raws.some((raw) => raw.includes(FORBIDDEN)))
      throw new Error("A record holds a value that may not leave");
    checkKeys(raws, way, account, exports, expected);
  } else checkTexts(raws, way, one, exports, expected);
}

async function recordsOf({ records }: Verdict, way: Way, collection: string): Promise<readonly string[]> {
  if (way.output === undefined) {
    const all = [...records.values()].flat();
    const mine = records.get(way.language === "jsonl" ? "" : collection) ?? [];
    if (mine.length !== all.length) throw new Error("Records of a stream that has no rows");
    return mine;
  }
  const folder = join(way.output, collection);
  // A stream without dates has a folder for each time that it is read.
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  const state = await readFile(join(way.output, "state.json"), "utf8").catch(() => "");
  refusePrivate("The state", state);
  const texts = await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const bytes = await readFile(join(parentPath, name));
      return (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("latin1");
    }),
  );
  await rm(way.output, { recursive: true, force: true });
  return texts.flatMap((text) => text.split("\n").slice(0, -1));
}

/** Of rows that were pruned: every key, and no other. */
function checkKeys(
  raws: readonly string[],
  { nul }: Way,
  account: Account,
  { isHidden, isScrambled, sent }: Exports,
  expected: Expected,
): void {
  const name = KEY_NAMES[account.collection];
  const rows = account.held.filter(({ judged }) => judged.kind === "row").map(identityOf);
  const wanted = new Set(nul === undefined ? rows : rows.map((key) => key.replaceAll("\\u0000", nul)));
  const keys = new Set(raws.map((raw) => identityOf({ text: raw, judged: judgeLine(raw, name) })));
  const others = isHidden || isScrambled ? [] : [...keys].filter((key) => !wanted.has(key));
  // Junk may be a row without a key.
  const judged = (others.length === 0 ? [] : sent.flatMap(linesIn)).map((text) => ({
    text,
    judged: judgeLine(text, name),
  }));
  const allowed = new Set(judged.filter(({ judged }) => judged.kind === "row").map(identityOf));
  const other = others.find((key) => !allowed.has(key));
  if (other !== undefined) throw new Error(`A record that nobody sent: ${other.slice(0, 300)}`);
  if (expected !== "complete") return;
  for (const key of wanted)
    if (!keys.has(key)) throw new Error(`A row that was not delivered: ${key.slice(0, 300)}`);
}

/** Every record is a line that was sent, none comes twice, and if the run may be complete every key comes. */
function checkTexts(
  raws: readonly string[],
  { nul }: Way,
  one: Case,
  exports: Exports,
  expected: Expected,
): void {
  const { account } = one;
  const left = new Map(account.held.map((held) => [held.text, held]));
  const delivered = new Set<string>();
  const others: string[] = [];
  for (const raw of raws) {
    if (/[\r\n]|\xe2\x80[\xa8\xa9]|\xc2\x85/.test(raw))
      throw new Error(`A record on two lines: ${raw.slice(0, 500)}`);
    const held = left.get(raw);
    if (held?.judged.kind !== "row") others.push(raw);
    else {
      delivered.add(identityOf(held));
      left.delete(raw);
    }
  }
  const spelt = new Map([...left.values()].flatMap((held) => speltOf(held.text, held.judged, nul)));
  const name = KEY_NAMES[account.collection];
  for (const line of exports.sent.flatMap(linesIn)) {
    if (others.length === 0) break;
    for (const [text, key] of speltOf(line, judgeLine(line, name), nul))
      spelt.set(text, spelt.get(text) ?? key);
  }
  const texts = new Set<string>();
  for (const raw of others) {
    const text = canonical(raw, nul);
    const key = spelt.get(text);
    if (key === undefined && !exports.isScrambled) {
      throw new Error(`A record that nobody sent, or that comes twice: ${raw.slice(0, 1_000)}`);
    }
    if (texts.has(text) && !exports.isScrambled)
      throw new Error(`A record that comes twice: ${raw.slice(0, 500)}`);
    texts.add(text);
    if (key !== undefined) delivered.add(key);
  }
  if (expected !== "complete") return;
  for (const held of account.held) {
    if (!delivered.has(identityOf(held)))
      throw new Error(`A row that was not delivered: ${held.text.slice(0, 1_000)}`);
  }
}

const speltOf = (
  text: string,
  judged: Judged,
  nul: string | undefined,
): readonly (readonly [string, string])[] =>
  judged.kind === "row" ? [[canonical(text, nul), identityOf({ text, judged })]] : [];

function linesIn(body: Buffer): string[] {
  const text = body.toString("latin1");
  return (text.startsWith("\xef\xbb\xbf") ? text.slice(3) : text)
    .split("\n")
    .map((line) => line.replace(/\r$/, ""));
}
