import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text as bodyOf } from "node:stream/consumers";
import { toLatin1 } from "../../../../src/latin1.ts";
import type { Dice } from "../dice.ts";
import { DAYS, judgeLine } from "../rows.ts";
import { environmentOf, jobsAt, read, runAndJudge, tap } from "../run.ts";
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
import { CANARY, FORBIDDEN } from "../verdict.ts";

/** Rows and items of whom `suppress_file` names, spelt otherwise: nothing of them leaves, and nothing is bought for them. */
export const suppressed = (): Promise<Target> =>
  openTarget((service, folder) => async (dice) => {
    const list = join(folder, "suppressed.txt");
    const entries = NAMES.flatMap(({ id, email, domain }) => [dice.pick([id, email]), domain]);
    writeFileSync(list, entries.map((entry) => entryOf(dice, entry)).join(dice.pick(["\n", "\r\n"])));
    const accounts = new Map(
      (["people", "companies"] as const).map((name) => [
        `/api/v1/public/${name}`,
        accountOf(dice, name, entries),
      ]),
    );
    const bought: string[] = [];
    service.answer = async ({ method, path, query }, response) => {
      if (method === "POST") bought.push((JSON.parse(await bodyOf(response.req)) as { email: string }).email);
      const account = accounts.get(path.replace(/\/stream$/, "")) ?? new Account("sources", []);
      const rows = (): string =>
        account
          .exported(query)
          .map((row) => `${row}\n`)
          .join("");
      const body = path.endsWith("/stream") ? rows() : account.list(query);
      const sold = '{"success":true,"data":{"status":"ok"}}';
      response.writeHead(200, HEADERS).end(method === "POST" ? sold : Buffer.from(body, "latin1"));
    };
    const stream = dice.pick(["people", "companies", "email_verifications"] as const);
    const buys = stream === "email_verifications";
    const wanted = entries.filter((entry) => entry.includes("@")).map((entry) => spelt(dice, entry));
    const jobs = {
      ...{ ...jobsAt(service.url), EMAIL_VERIFICATION__FROM_PEOPLE: "true" },
      EMAIL_VERIFICATION__EMAILS: JSON.stringify([...wanted, "keep@keep.example"]),
    };
    const asked = dice.pick([
      tap(),
      read("airbyte", "--stream", stream),
      ...(buys ? [] : [read("jsonl", "--stream", stream)]),
    ]);
    const environment = environmentOf(service.url, folder, { SUPPRESS_FILE: list, ...(buys && jobs) });
    const { records, succeeded, said } = await runAndJudge(asked, environment);
    if (!succeeded) throw new Error(`The run fails: ${said.slice(-2_000)}`);
    const raws = [...records.values()].flat();
    const leaked = raws.find((raw) => raw.includes(FORBIDDEN));
    if (leaked !== undefined) throw new Error(`A record of whom the file names: ${leaked.slice(0, 1_000)}`);
    const sold = bought.find((email) => !email.startsWith("keep"));
    if (sold !== undefined) throw new Error(`Bought for a suppressed person: ${sold}`);
    for (const { collection, held } of accounts.values()) {
      if (asked.words[0] !== "tap" && collection !== stream) continue;
      const keys = new Set(
        raws.map((text) => identityOf({ text, judged: judgeLine(text, KEY_NAMES[collection]) })),
      );
      const lost = held.find((one) => !one.text.includes(FORBIDDEN) && !keys.has(identityOf(one)));
      if (lost !== undefined) throw new Error(`A row that was not delivered: ${lost.text}`);
    }
    return 1;
  });

/** Who is suppressed, in normal form. */
const NAMES = [
  { id: "ab12-cd34", email: "ann.lee@example.com", domain: "example.com" },
  { id: "usr_77", email: "x@xn--mnchen-3ya.example", domain: "xn--bcher-kva.example" },
  { id: "ärger-5", email: "o'neil+a@mail.example.org", domain: "10.example" },
];

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
  const place = dice.below(text.length + 1);
  if (dice.chance(0.3)) text = text.slice(0, place) + dice.pick(odd) + text.slice(place);
  if (dice.chance(0.2) && at > 0) text = `'${text}'`;
  return dice.chance(0.3) ? `${dice.pick([" ", "\t", "\u00a0"])}${text} ` : text;
}

function entryOf(dice: Dice, value: string): string {
  if (dice.chance(0.2)) return `sha256:${createHash("sha256").update(value).digest("hex")}`;
  return spelt(dice, value, true) + dice.pick(["", "", " # gone", "\n", "\n# next"]);
}

/** Rows of which some are of those who are suppressed. Only these hold the word that may not leave, as a field's name too. */
function accountOf(dice: Dice, collection: Collection, entries: readonly string[]): Account {
  const held = Array.from({ length: 1 + dice.below(25) }, (_, nth): Held => {
    const name = dice.chance(0.4) ? dice.pick(NAMES) : undefined;
    const day = dice.chance(0.05) ? null : dice.pick(DAYS);
    const email = dice.chance(0.1) ? dice.pick([null, 5, [], `${CANARY}@x`]) : `keep${nth}@keep.example`;
    const members: [string, unknown][] =
      collection === "people"
        ? [
            ["id", `${CANARY}-${nth}`],
            ["email", email],
          ]
        : [["domain", `${nth}.keep.example`]];
    for (const member of name === undefined ? [] : members) {
      const value = name?.[member[0] as "id"] ?? "";
      const isNamed = entries.includes(value) || dice.chance(0.5);
      member[1] = isNamed ? spelt(dice, value) : `${FORBIDDEN}${nth}@keep.example`;
    }
    const mark = name === undefined ? CANARY : FORBIDDEN;
    members.push(["lastName", `${mark}-${nth}`]);
    members.push(["discoveredAt", day === null ? null : `${day}T00:00:${String(nth).padStart(2, "0")}.000Z`]);
    if (dice.chance(0.2)) members.push([mark === CANARY ? "more" : `${FORBIDDEN}${nth}`, { inner: mark }]);
    if (dice.chance(0.2)) members.sort(() => dice.next() - 0.5);
    const text = toLatin1(
      `{${members.map((member) => member.map((part) => JSON.stringify(part)).join(dice.pick([":", " : "]))).join(",")}}`,
    );
    return { text, day, judged: judgeLine(text, KEY_NAMES[collection]) };
  });
  // A service has one row of a key.
  return new Account(collection, [...new Map(held.map((one) => [identityOf(one), one])).values()]);
}
