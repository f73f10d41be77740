import { RowNotes } from "../../../../src/api/row-notes.ts";
import { RowParser } from "../../../../src/api/rows.ts";
import { type FieldRules, mergeRules, schemaUnder } from "../../../../src/catalog/field-rules.ts";
import { Privacy } from "../../../../src/catalog/privacy.ts";
import { type JsonSchema, loadSchema } from "../../../../src/catalog/schema.ts";
import { select } from "../../../../src/catalog/singer-selection.ts";
import { STREAMS } from "../../../../src/catalog/streams.ts";
import { isObject, tryParseJson } from "../../../../src/json.ts";
import { rawLine } from "../../../support/events.ts";
import type { Dice } from "../dice.ts";
import { LineMaker } from "../line.ts";
import type { Target } from "../target.ts";

/** What narrows or changes the rows. */
export type Cutting = "drop" | "hash" | "select" | "only";

/** Usual rows, of which fields are cut by their place, and the same rows token by token: what leaves is the same. */
export const cuts = (cutting: Cutting) => async (): Promise<Target> => ({
  play: async (dice) => playCuts(cutting, dice),
  close: async () => {},
});

const LINES = 2_000;
const PEOPLE = STREAMS[0];
const SCHEMA = loadSchema("people");
const FIELDS = Object.keys(SCHEMA.properties ?? {}).filter((name) => !["id", "discoveredAt"].includes(name));
/** Dropped or hashed, rows may have them with any value. `é` has two bytes; a comma and a colon are no end of a name. */
const OWN_FIELDS = ["é", "lastName2", "astName", "x.y", "$&"];

function playCuts(cutting: Cutting, dice: Dice): number {
  const some = (names: readonly string[]): string[] => names.filter(() => dice.chance(0.3));
  const named = [...some(FIELDS), ...(cutting === "select" ? [] : some(OWN_FIELDS.slice(0, 1)))];
  const other = cutting === "hash" || dice.chance(0.3) ? some(FIELDS) : [];
  const privacy = new Privacy({
    ...{ companyLookup: null, emailVerification: null, emailCheck: null },
    onlyFields: cutting === "only" ? onlyOf(dice, named) : [],
    dropFields: cutting === "drop" ? named : other.filter(() => cutting === "hash"),
    hashFields: cutting === "hash" ? named : other,
    hashSalt: "s".repeat(1 + dice.below(200)),
  });
  const selection = cutting === "select" ? selectionOf(named) : null;
  const rules = mergeRules(privacy.rules("people"), selection);
  const rewrite = privacy.rewriter("people", selection);
  if (rules === null || rewrite === null) return 0;
  const own = some(OWN_FIELDS);
  const schema = schemaUnder(privacy.rules("people"), schemaWith(own), "arriving");
  const parser = new RowParser({ key: "id", cursor: "discoveredAt", schema });
  const order = orderOf(dice, [...FIELDS, ...own]);
  const maker = new LineMaker(dice, "id");
  const notes = new RowNotes();
  let usual = 0;
  for (let nth = 0; nth < LINES; nth++) {
    const line = rawLine(dice.chance(0.05) ? maker.row(nth).text : lineOf(dice, nth, order));
    const { names } = parser.match(line) ?? {};
    const value = names === undefined ? tryParseJson(line) : undefined;
    if (isObject(value)) parser.parse(line, value, notes);
    if (names === undefined) continue;
    usual += 1;
    const [cut, whole] = [rewrite(line, names), rewrite(line)];
    if (cut !== whole) throw new Error(`Cut: ${cut}\nwhole: ${whole}\nof ${line}\nnames ${names}`);
  }
  return usual;
}

/** Some as they are, some as if they were objects. */
const onlyOf = (dice: Dice, names: readonly string[]): string[] =>
  names
    .filter((name) => FIELDS.includes(name))
    .map((name) => (dice.chance(0.2) ? `people.${name}.${dice.pick(["*", "inner"])}` : name));

function selectionOf(deselected: readonly string[]): FieldRules | null {
  const { properties = {} } = SCHEMA;
  // One field is not in the catalog at all.
  const { [deselected[0] ?? ""]: _unnamed, ...named } = properties;
  const metadata = deselected.map((name) => ({
    breadcrumb: ["properties", name],
    metadata: { selected: false },
  }));
  metadata.push({ breadcrumb: [], metadata: { selected: true } });
  const entry = {
    tap_stream_id: "people",
    stream: "people",
    schema: { ...SCHEMA, properties: named },
    metadata,
  };
  const stream = { spec: PEOPLE, schema: SCHEMA, sampled: true } as never;
  return select({ streams: [entry] }, [stream]).selections[0]?.rules ?? null;
}

const schemaWith = (names: readonly string[]): JsonSchema => ({
  ...SCHEMA,
  properties: { ...SCHEMA.properties, ...Object.fromEntries(names.map((name) => [name, {}])) },
});

/** What could be taken for the end of a value, or for a name. */
const TEXTS = [
  ...[
    "",
    "x",
    ",",
    "{",
    "}",
    "]",
    '",',
    '"',
    "\\",
    '\\"',
    "é",
    "\u0000",
    "\u2028",
    "😀",
    ":",
    '":',
    ": ",
    "/",
  ],
  ...FIELDS.flatMap((name) => [`"${name}":`, `,"${name}":"`, `{"${name}":null}`, `\\"${name}\\":`]),
];

/** The key and the cursor may be the first names, the last ones, or any between. */
function orderOf(dice: Dice, names: readonly string[]): readonly string[] {
  const order = [...names];
  for (const name of ["id", "discoveredAt"])
    order.splice(dice.pick([0, order.length, dice.below(order.length)]), 0, name);
  return order;
}

function lineOf(dice: Dice, nth: number, order: readonly string[]): string {
  const text = (): string => {
    let built = "";
    for (let times = dice.below(4); times > 0; times--) built += dice.pick(TEXTS);
    return JSON.stringify(built);
  };
  const value = (name: string): string => {
    if (name === "id") return `"p${nth}"`;
    if (name === "discoveredAt") return `"2026-03-0${1 + dice.below(9)}T00:00:00.000Z"`;
    if (dice.chance(0.1)) return "null";
    if (name === "companySize") return String(dice.below(1_000_000));
    if (name !== "sources" && !dice.chance(0.003)) return text();
    return `[${Array.from({ length: dice.below(3) }, text).join(",")}]`;
  };
  const names = order.filter((name) => name === "id" || !dice.chance(0.1));
  const members = names.map((name) => `${JSON.stringify(name)}:${value(name)}`);
  // A name that no schema has, and one twice.
  if (dice.chance(0.03))
    members.splice(dice.below(members.length), 0, dice.pick(['"a\\"email":1', '"email":"x"']));
  return `{${members.join(",")}}`;
}
