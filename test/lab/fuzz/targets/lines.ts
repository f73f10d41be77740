import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Dice } from "../dice.ts";
import { bent } from "../hostile.ts";
import { canonical, DAYS, junk, oddRow, type Rules, SALT, UNCHANGED, USUAL_NAMES } from "../rows.ts";
import { environmentOf, runAndJudge } from "../run.ts";
import {
  Account,
  type Collection,
  HEADERS,
  type Held,
  KEY_NAMES,
  openTarget,
  type Target,
} from "../service.ts";
import { FORBIDDEN, type Verdict } from "../verdict.ts";

/** How a run asks for the rows, and what is to become of them. */
type Way = {
  readonly line: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly rules: Rules;
};

/** Bodies of up to thousands of odd rows, through a socket and a run to its output. */
export const lines = (): Promise<Target> =>
  openTarget((service, folder) => {
    const catalog = join(folder, "catalog.json");
    writeFileSync(catalog, JSON.stringify(CATALOG));
    return async (dice) => {
      const collection: Collection = dice.chance(0.8) ? "people" : "companies";
      const way = wayOf(dice, collection);
      const isSick = collection === "people" && dice.chance(0.1);
      const held = heldOf(dice, collection, way.rules, isSick);
      const account = new Account(held);
      const exports = new Exports(collection, dice, isSick || dice.chance(0.7) ? 0 : 1 + dice.below(2));
      service.answer = ({ path, query }, response) => {
        const base = `/api/v1/public/${collection}`;
        if (path === `${base}/stream`) exports.answer(account.exported(query), response);
        else if (path.endsWith("/stream")) response.writeHead(200, HEADERS).end();
        else response.writeHead(200, HEADERS).end((path === base ? account : NOBODY).list(query));
      };
      const environment = environmentOf(service.url, folder, way.settings);
      const verdict = await runAndJudge(way.line, environment, catalog);
      compare(verdict, way.rules, held, exports.isScrambled);
      return held.length;
    };
  });

const NOBODY = new Account([]);

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

function wayOf(dice: Dice, collection: Collection): Way {
  const keyed = [KEY_NAMES[collection], "discoveredAt"];
  const line = `connector read --format ${dice.pick(["airbyte", "jsonl"])} --stream ${collection}`;
  const fields = dice.pick([["email"], ["firstName", "sources"], ["companySize", "industry"]]);
  const way = (setting: string, rules: Partial<Rules>): Way => ({
    ...{ line, settings: { [setting]: JSON.stringify(fields), HASH_SALT: SALT } },
    rules: { ...UNCHANGED, ...rules },
  });
  const tap = { ...UNCHANGED, nul: "\ufffd" };
  const isNamed = (name: string): boolean => NAMED.includes(name) && name !== "email";
  const ways: readonly Way[] = [
    way("DROP_FIELDS", { leaves: (name) => !fields.includes(name) }),
    way("HASH_FIELDS", { hashed: fields, isForFlat: true }),
    way("ONLY_FIELDS", { leaves: (name) => [...fields, ...keyed].includes(name), isForFlat: true }),
    // SCHEMA cannot name what is empty, or differs from another name only by case.
    { line: "tap", rules: { ...tap, ignores: (name) => ![keyed[0], ...USUAL_NAMES].includes(name) } },
    collection === "people"
      ? { line: "tap --catalog $", rules: { ...tap, leaves: isNamed } }
      : { line, rules: UNCHANGED },
  ];
  return dice.chance(0.4) ? { line, rules: UNCHANGED } : dice.pick(ways);
}

/** Rows that a healthy service could hold, and junk for ever among those of a sick one. Some stand twice in an export. */
function heldOf(dice: Dice, collection: Collection, rules: Rules, isSick: boolean): readonly Held[] {
  const most = isSick ? 60 : dice.pick([4, 60, 60, 1_000, 8_000]);
  const key = KEY_NAMES[collection];
  const isForbidden = (name: string): boolean =>
    name !== key && name !== "discoveredAt" && (!rules.leaves(name) || rules.hashed.includes(name));
  const rows = Array.from({ length: 1 + dice.below(most) }, (_, nth) => oddRow(dice, nth, key, isForbidden));
  // Objects are hashed as JSON, and keep the fields that are named within them.
  const held = rules.isForFlat === true ? rows.filter(({ text }) => !/.\{|true|false/s.test(text)) : rows;
  if (isSick) return [...held, { text: junk(dice, key), day: dice.pick(DAYS), isJunk: true }];
  return dice.chance(0.3) ? [...held, ...held.slice(0, dice.below(20))] : held;
}

/** The exports of one case: packed, in pieces of odd sizes, the first of them damaged. */
class Exports {
  /** Whether changed bytes of a gzip may have been taken for rows, until its check sum was read. */
  isScrambled = false;
  /** How many exports are damaged before the first that is not. */
  readonly #damaged: number;
  readonly #dice: Dice;
  readonly #key: string;
  readonly #separator: string;
  #count = 0;

  constructor(collection: Collection, dice: Dice, damaged: number) {
    this.#dice = dice;
    this.#key = KEY_NAMES[collection];
    this.#separator = dice.pick(["\n", "\n", "\r\n", "\n\n", "\n \n"]);
    this.#damaged = damaged;
  }

  answer(rows: readonly string[], response: ServerResponse): void {
    this.#count += 1;
    if (this.#count > this.#damaged || rows.length === 0) this.#send(this.#bytes(rows), response);
    else this.#damage([...rows], response);
  }

  #bytes(rows: readonly string[]): Buffer {
    const dice = this.#dice;
    const text = rows.join(this.#separator) + (dice.chance(0.7) ? this.#separator : "");
    return Buffer.from(dice.chance(0.1) ? `\ufeff${text}` : text);
  }

  #damage(rows: string[], response: ServerResponse): void {
    const dice = this.#dice;
    const way = dice.below(6);
    if (way < 3) {
      for (let times = dice.chance(0.05) ? 1_100 : 1 + dice.below(5); times > 0; times--)
        rows.splice(dice.below(rows.length + 1), 0, junk(dice, this.#key));
      this.#send(this.#bytes(rows), response);
    } else if (way < 5) this.#send(this.#bytes(rows), response, { part: dice.next(), isReset: way === 3 });
    else {
      this.isScrambled = true;
      this.#send(this.#bytes(rows), response, { isBent: true });
    }
  }

  /** @param part of the bytes that are sent. `isBent`: after they were packed */
  #send(plain: Buffer, response: ServerResponse, { part = 1, isReset = false, isBent = false } = {}): void {
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

/** Every record is a row of the service, less what may not leave, and comes once; a run that can be complete brings every row. */
function compare(verdict: Verdict, rules: Rules, held: readonly Held[], isScrambled: boolean): void {
  const rows = new Map(held.flatMap((one) => (one.isJunk ? [] : [[canonical(one.text, rules), one]])));
  const { nul, ignores = () => false } = rules;
  const asTheyAre = { ...UNCHANGED, nul, ignores };
  const delivered = new Set<Held>();
  for (const { raw } of verdict.records) {
    const row = rows.get(canonical(raw, asTheyAre));
    const refuse = (what: string): never => {
      throw new Error(`A record ${what}: ${raw.slice(0, 1_000)}`);
    };
    if (/[\r\n\u2028\u2029\u0085]/.test(raw)) refuse("that a reader takes for two lines");
    if (raw.includes(FORBIDDEN)) refuse("with a value that may not leave");
    if (!isScrambled && row === undefined) refuse("that nobody sent");
    if (!isScrambled && row !== undefined && delivered.has(row)) refuse("that comes twice");
    if (row !== undefined) delivered.add(row);
  }
  if (held.some(({ isJunk }) => isJunk)) return;
  const lost = held.find((row) => !delivered.has(row));
  if (!verdict.succeeded)
    throw new Error(`A run that could be complete failed: ${verdict.said.slice(-3_000)}`);
  if (lost !== undefined) throw new Error(`A row that was not delivered: ${lost.text.slice(0, 1_000)}`);
}
