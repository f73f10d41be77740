import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { text as bodyOf } from "node:stream/consumers";
import { toLatin1 } from "../../../../src/latin1.ts";
import { CANARY, FORBIDDEN } from "../canary.ts";
import { type Asked, readWith, tapWith } from "../commands.ts";
import type { Dice } from "../dice.ts";
import { judgeLine } from "../judge.ts";
import { DAYS } from "../line.ts";
import { environmentOf, play } from "../play.ts";
import {
  Account,
  type Collection,
  daysOf,
  HEADERS,
  type Held,
  KEY_NAMES,
  listText,
  type Request,
} from "../service.ts";
import { openTarget, type Target } from "../target.ts";
import { judgeEnded } from "../verdict.ts";

/** What a run is told to hold back: whom a file names, or what no list of fields does. */
type Setting = "suppress_file" | "only_fields";

/**
 * Rows and items of whom a file names, spelt otherwise, or fields that nobody named, in every language: nothing of them
 * leaves, nothing is bought.
 */
export const heldBack = (setting: Setting) => (): Promise<Target> =>
  openTarget((service, folder) => async (dice) => {
    const list = join(folder, "suppressed.txt");
    const output = join(folder, "output");
    const entries = NAMES.flatMap(({ id, email, domain }) => [dice.pick([id, email]), domain]);
    await writeFile(list, entries.map((entry) => entryOf(dice, entry)).join(dice.pick(["\n", "\r\n"])));
    const accounts = new Map([
      accountOf(dice, "people", setting, entries),
      accountOf(dice, "companies", setting, entries),
    ]);
    const bought: string[] = [];
    service.answer = (request, response) => void answer(accounts, request, response, bought);
    const buys = dice.chance(0.3);
    const way = wayOf(dice, buys ? "email_verifications" : dice.pick(["people", "companies"]), output);
    const settings = {
      ...(setting === "only_fields" ? ONLY : { SUPPRESS_FILE: list }),
      ...(buys && {
        ...PURCHASES(service.url),
        EMAIL_VERIFICATION__EMAILS: JSON.stringify(wantedOf(dice, setting === "only_fields" ? [] : entries)),
      }),
    };
    const variables = Object.entries(settings).map(([name, value]) => [
      `CONTACT_INTELLIGENCE_${name}`,
      value,
    ]);
    const environment = { ...environmentOf(service.url, folder), ...Object.fromEntries(variables) };
    const ended = await play(way.command, environment);
    const { records, succeeded, said } = judgeEnded(way.language, ended);
    if (!succeeded) throw new Error(`The run fails: ${said.slice(-2_000)}`);
    const raws = [...[...records.values()].flat(), ...(await textsIn(output))];
    const row = raws.find((text) => text.includes(FORBIDDEN));
    if (row !== undefined) throw new Error(`A record of what may not leave: ${row.slice(0, 1_000)}`);
    const sold = setting === "suppress_file" ? bought.find((text) => !text.startsWith("keep")) : undefined;
    if (sold !== undefined) throw new Error(`Bought for a suppressed person: ${sold}`);
    const keys = new Set(raws.flatMap((raw) => ["id", "domain"].map((name) => keyIn(raw, name))));
    for (const { collection, held } of way.asks
      .map((name) => accounts.get(`/api/v1/public/${name}`))
      .filter((one) => one !== undefined))
      for (const { text } of held)
        if (
          (setting === "only_fields" || !text.includes(FORBIDDEN)) &&
          !keys.has(keyIn(text, KEY_NAMES[collection]))
        )
          throw new Error(`A row that was not delivered: ${text}`);
    return 1;
  });

function keyIn(text: string, name: string): string | undefined {
  const judged = judgeLine(text, name);
  return judged.kind === "row" ? judged.key : undefined;
}

/** Who is suppressed, in normal form. */
const NAMES = [
  { id: "ab12-cd34", email: "ann.lee@example.com", domain: "example.com" },
  { id: "usr_77", email: "x@xn--mnchen-3ya.example", domain: "xn--bcher-kva.example" },
  { id: "ärger-5", email: "o'neil+a@mail.example.org", domain: "10.example" },
];

const ONLY = { ONLY_FIELDS: '["people.email","companies.industry","email_verifications.email"]' };

const PURCHASES = (url: string): Record<string, string> => ({
  ...{ RECEIPTS_FILE: "", EXTERNAL_API__API_URL: url, EMAIL_VERIFICATION__FROM_PEOPLE: "true" },
  EXTERNAL_API__API_KEY: "svc_0a1b2c3d_ffeeddccbbaa99887766554433221100",
});

/** As a person may write a value. @param isEntry on a line of its own */
function spelt(dice: Dice, value: string, isEntry = false): string {
  const at = value.lastIndexOf("@") + 1;
  let text = value;
  if (dice.chance(0.3)) text = text.replace("xn--mnchen-3ya", "münchen").replace("xn--bcher-kva", "bücher");
  if (dice.chance(0.2)) text = text.normalize("NFD");
  if (dice.chance(0.5)) text = [...text].map((one) => (dice.chance(0.5) ? one.toUpperCase() : one)).join("");
  if (dice.chance(0.2) && at === 0 && text.includes(".")) text = `www.${text}`;
  if (dice.chance(0.2) && text.includes(".")) text += dice.pick([".", "\u3002"]);
  const odd = isEntry ? ["\u200b", "\u00ad"] : ["\u0000", "\u200b", "\u00ad", "\ufeff", "\u0007", "\t"];
  if (dice.chance(0.3)) {
    const place = dice.below(text.length + 1);
    text = text.slice(0, place) + dice.pick(odd) + text.slice(place);
  }
  if (dice.chance(0.2) && at > 0) text = `'${text}'`;
  return dice.chance(0.3) ? `${dice.pick([" ", "\t", "\u00a0"])}${text} ` : text;
}

function entryOf(dice: Dice, value: string): string {
  if (dice.chance(0.2)) return `sha256:${createHash("sha256").update(value).digest("hex")}`;
  return spelt(dice, value, true) + dice.pick(["", "", " # gone", "\n", "\n# next"]);
}

/** What is to be bought: some for whom nothing may be, and others. */
const wantedOf = (dice: Dice, entries: readonly string[]): string[] => [
  ...entries.filter((entry) => entry.includes("@")).map((entry) => spelt(dice, entry)),
  "keep@keep.example",
];

/** Rows of which some are of those who are suppressed. Only these hold the word that may not leave, as a field's name too. */
function accountOf(
  dice: Dice,
  collection: Collection,
  setting: Setting,
  entries: readonly string[],
): [string, Account] {
  const held = Array.from({ length: 1 + dice.below(25) }, (_, nth): Held => {
    const isOnly = setting === "only_fields";
    const name = dice.chance(0.4) && !isOnly ? dice.pick(NAMES) : undefined;
    const day = dice.chance(0.05) ? null : dice.pick(DAYS);
    const other = dice.chance(0.1) ? dice.pick([null, 5, [], `${CANARY}@x`]) : `keep${nth}@keep.example`;
    const members: [string, unknown][] =
      collection === "people"
        ? [
            ["id", `${CANARY}-${collection}-${nth}`],
            ["email", other],
          ]
        : [["domain", `${nth}.keep.example`]];
    for (const member of name === undefined ? [] : members) {
      const value = name?.[member[0] as "id"] ?? "";
      const isNamed = entries.includes(value) || dice.chance(0.5);
      member[1] = isNamed ? spelt(dice, value) : `${FORBIDDEN}${nth}@keep.example`;
    }
    const mark = name === undefined && !isOnly ? CANARY : FORBIDDEN;
    members.push(["lastName", `${mark}-${nth}`]);
    members.push(["discoveredAt", day === null ? null : `${day}T00:00:${String(nth).padStart(2, "0")}.000Z`]);
    if (dice.chance(0.2)) members.push([mark === CANARY ? "more" : `${FORBIDDEN}${nth}`, { inner: mark }]);
    if (dice.chance(0.2)) members.sort(() => dice.next() - 0.5);
    const twice = members.find(([field]) => field === "email");
    if (twice !== undefined && dice.chance(0.1))
      members.splice(dice.below(2), 0, ["email", twice[1]], ["email", null]);
    const text = toLatin1(`{${members.map((member) => memberOf(dice, member)).join(",")}}`);
    return { text, day, judged: judgeLine(text, collection === "people" ? "id" : "domain") };
  });
  return [`/api/v1/public/${collection}`, new Account(collection, unlike(held))];
}

/** A service has one row of a key. */
const unlike = (held: readonly Held[]): Held[] => {
  const keys = new Set<string>();
  return held.filter(({ judged }) => judged.kind === "row" && !keys.has(judged.key) && keys.add(judged.key));
};

/** A member, with escapes and spaces now and then. */
function memberOf(dice: Dice, [name, value]: readonly [string, unknown]): string {
  const isSpelt = name !== "discoveredAt" && name !== "lastName" && dice.chance(0.15);
  const escaped = (json: string): string =>
    !isSpelt
      ? json
      : json.replace(/(?<!\\)[a-z@](?=[^"\\]*")/g, (one) => (dice.chance(0.3) ? escapeOf(one) : one));
  const space = dice.chance(0.1) ? " " : "";
  const isText = typeof value === "string" && /^[^\\\p{Cc}]*$/u.test(value);
  const json = JSON.stringify(value);
  return `${escaped(JSON.stringify(name))}${space}:${space}${isText ? escaped(json) : json}`;
}

const escapeOf = (one: string): string => `\\u00${one.charCodeAt(0).toString(16)}`;

/** `asks`: for which collections. */
type Way = Asked & { readonly asks: readonly Collection[] };

function wayOf(dice: Dice, stream: Collection | "email_verifications", output: string): Way {
  const streams = [stream];
  const isJob = stream === "email_verifications";
  const asks = stream === "email_verifications" ? [] : [stream];
  const way = dice.below(4);
  if (way === 0) return { ...tapWith({}), asks: isJob ? [] : ["people", "companies"] };
  if (way === 1) return { ...readWith({ streams, format: "jsonl", output }), language: "text", asks };
  if (way === 2 && !isJob) return { ...readWith({ streams, format: "jsonl" }), asks };
  return { ...readWith({ streams }), asks };
}

async function answer(
  accounts: ReadonlyMap<string, Account>,
  { method, path, query }: Request,
  response: ServerResponse,
  bought: string[],
): Promise<void> {
  if (method === "POST") {
    bought.push((JSON.parse(await bodyOf(response.req)) as { email: string }).email);
    response.writeHead(200, HEADERS).end('{"success":true,"data":{"status":"ok"}}');
    return;
  }
  const account = accounts.get(path.replace(/\/stream$/, "")) ?? new Account("sources", []);
  const body = path.endsWith("/stream")
    ? account
        .within(daysOf(query))
        .map(({ text }) => `${text}\n`)
        .join("")
    : listText(account, query);
  response.writeHead(200, HEADERS).end(Buffer.from(body, "latin1"));
}

/** The files of a folder, state and all, which is gone then. */
async function textsIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  const texts = await Promise.all(
    files.map(({ parentPath, name }) => readFile(join(parentPath, name), "latin1")),
  );
  await rm(folder, { recursive: true, force: true });
  return texts.flatMap((text) => text.split("\n"));
}
