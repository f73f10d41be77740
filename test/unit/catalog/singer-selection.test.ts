import { describe, expect, it } from "vitest";
import type { DiscoveredStream } from "../../../src/catalog/airbyte.ts";
import { lineRewriter } from "../../../src/catalog/field-rules.ts";
import { loadSchema, propertiesOf, TIMESTAMP } from "../../../src/catalog/schema.ts";
import { streamsIn, toSingerCatalog } from "../../../src/catalog/singer.ts";
import { type Selection, select } from "../../../src/catalog/singer-selection.ts";
import { STREAMS } from "../../../src/catalog/streams.ts";
import { LOOKUPS, PEOPLE } from "../../support/tap-streams.ts";

type Meta = Record<string, unknown>;
type Crumbs = Record<string, Meta>;

/** The catalog of discovery, as edited: metadata by dotted path, `""` for the root. */
function edited(crumbs: Crumbs, node: Meta = {}, stream = PEOPLE): object {
  const [entry] = JSON.parse(JSON.stringify(toSingerCatalog([stream]))).streams;
  for (const item of entry.metadata) {
    const path = item.breadcrumb.filter((part: string) => part !== "properties").join(".");
    Object.assign(item.metadata, crumbs[path]);
  }
  return { streams: [{ ...entry, ...node }] };
}

const only = (catalog: object, stream = PEOPLE) => {
  const { selections, warnings, refusals } = select(catalog, [stream]);
  expect(selections).toHaveLength(1);
  const { schema, keyProperties, method, replicationKey, rules } = selections[0] ?? whole;
  return { schema, keyProperties, method, replicationKey, rules, warnings, refusals };
};

const [whole] = select(undefined, [PEOPLE]).selections as [Selection];

const namesOf = (schema: unknown): string[] => Object.keys(propertiesOf(schema));

/** What leaves of a row. */
const sent = ({ rules }: Pick<Selection, "rules">, row: object): unknown =>
  JSON.parse(rules === null ? JSON.stringify(row) : lineRewriter(rules)(JSON.stringify(row)));

describe("select()", () => {
  it("takes the streams selected by default, whole, without a catalog", () => {
    const { selections } = select(undefined, [PEOPLE, LOOKUPS]);
    expect(selections.map(({ stream, method, rules }) => [stream, method, rules])).toEqual([
      ["people", "INCREMENTAL", null],
    ]);
  });

  it("lets every row out without a catalog, also where the live rows could not be seen", () => {
    const [selection] = select(undefined, [{ ...PEOPLE, sampled: false }]).selections;
    expect(selection).toMatchObject({ stream: "people", rules: null, sampled: null });
  });

  it("remembers that a catalog was made when there were no rows", () => {
    const unseen = { ...PEOPLE, sampled: false };
    const [selection] = select(toSingerCatalog([unseen]), [unseen]).selections;
    expect(selection).toMatchObject({ stream: "people", sampled: false });
  });

  it("takes the catalog of discovery as it is", () => {
    const { selections, warnings, unknown } = select(toSingerCatalog([PEOPLE, LOOKUPS]), [PEOPLE, LOOKUPS]);
    expect(selections.map(({ stream }) => stream)).toEqual(["people"]);
    expect(selections[0]).toMatchObject({ schema: PEOPLE.schema, keyProperties: ["id"] });
    expect([...warnings, ...unknown]).toEqual([]);
  });

  it.each([
    ["a list", [], /not an object with a list "streams"/],
    ["a text", "nonsense", /not an object with a list "streams"/],
    ["nothing", null, /not an object with a list "streams"/],
    ["an object without streams", {}, /not an object with a list "streams"/],
    [
      "Airbyte's",
      { streams: [{ stream: { name: "people" }, sync_mode: "incremental" }] },
      /catalog of Airbyte.*--discover/,
    ],
    [
      "what Airbyte's discovery prints",
      { streams: [{ name: "people", json_schema: { type: "object" } }] },
      /catalog of Airbyte.*--discover/,
    ],
  ])("refuses a catalog that is %s, which would read nothing", (_what, catalog, message) => {
    expect(() => select(catalog, [PEOPLE])).toThrow(message);
  });

  it.each<[string, Crumbs, Meta, boolean]>([
    ["selected", { "": { selected: true } }, {}, true],
    ["deselected", { "": { selected: false } }, {}, false],
    [
      "deselected although its key is automatic",
      { "": { selected: false }, id: { selected: true } },
      {},
      false,
    ],
    ["deselected on its node only", {}, { selected: false }, false],
    ["selected in metadata, not on its node", { "": { selected: true } }, { selected: false }, true],
    ["unsupported", { "": { selected: true, inclusion: "unsupported" } }, {}, false],
    ["without any metadata", {}, { metadata: [] }, true],
    ["not selected by default", { "": { "selected-by-default": false } }, {}, false],
  ])("decides on a stream that is %s", (_, crumbs, node, chosen) => {
    expect(select(edited(crumbs, node), [PEOPLE]).selections).toHaveLength(chosen ? 1 : 0);
  });

  it.each<[string, Crumbs, boolean]>([
    ["available", {}, true],
    ["deselected", { name: { selected: false } }, false],
    ["automatic, though deselected", { name: { inclusion: "automatic", selected: false } }, true],
    ["unsupported, though selected", { name: { inclusion: "unsupported", selected: true } }, false],
    ["not selected by default", { name: { "selected-by-default": false } }, false],
    [
      "not selected by default, yet selected",
      { name: { "selected-by-default": false, selected: true } },
      true,
    ],
  ])("decides on a field that is %s", (_, crumbs, stays) => {
    const { schema, rules } = only(edited(crumbs));
    expect(namesOf(schema).includes("name")).toBe(stays);
    expect(sent({ rules }, { id: "1", name: "x" })).toEqual(stays ? { id: "1", name: "x" } : { id: "1" });
    expect(schema).toHaveProperty("required", stays ? ["id", "name"] : ["id"]);
  });

  it("keeps a field without metadata", () => {
    const chosen = only(edited({}, { metadata: [{ breadcrumb: [], metadata: { selected: true } }] }));
    expect(sent(chosen, { id: "1", name: "x" })).toEqual({ id: "1", name: "x" });
  });

  it("never drops keys or the replication key", () => {
    const { schema, rules } = only(
      edited({
        ...{ id: { inclusion: "available", selected: false }, name: { selected: false } },
        discoveredAt: { inclusion: "unsupported" },
      }),
    );
    expect(namesOf(schema)).toEqual(["id", "discoveredAt", "company", "tags"]);
    expect(sent({ rules }, { id: "1", name: "x", discoveredAt: null })).toEqual({
      id: "1",
      discoveredAt: null,
    });
  });

  it("prunes nested fields, and with a parent all of its children", () => {
    const { schema, rules } = only(edited({ "company.address.zip": { selected: false } }));
    expect(schema).toMatchObject({
      properties: { company: { properties: { address: { properties: { city: {} } } } } },
    });
    expect(JSON.stringify(schema)).not.toContain("zip");
    const company = { id: 1, address: { city: "x", zip: "y" } };
    expect(sent({ rules }, { company })).toEqual({ company: { id: 1, address: { city: "x" } } });
    const without = only(edited({ company: { selected: false }, "company.domain": { selected: true } }));
    expect(namesOf(without.schema)).not.toContain("company");
  });

  it.each<[string, Crumbs, Meta, string]>([
    ["root metadata beats what is forced", { "": { "replication-method": "FULL_TABLE" } }, {}, "FULL_TABLE"],
    ["so does the stream node", {}, { replication_method: "FULL_TABLE" }, "FULL_TABLE"],
    [
      "root metadata beats the node",
      { "": { "replication-method": "FULL_TABLE" } },
      { replication_method: "INCREMENTAL" },
      "FULL_TABLE",
    ],
  ])("knows which method is asked: %s", (_, crumbs, node, method) => {
    expect(only(edited(crumbs, node))).toMatchObject({
      method,
      replicationKey: "discoveredAt",
      warnings: [],
    });
  });

  it("warns of a method or key that the stream cannot have", () => {
    const method = only(edited({}, { replication_method: "LOG_BASED" }));
    expect(method.method).toBe("INCREMENTAL");
    expect(method.warnings).toEqual([expect.stringContaining('"LOG_BASED"')]);
    const key = only(edited({}, { key_properties: ["id", "nope"] }));
    expect(key.keyProperties).toEqual(["id"]);
    expect(key.warnings).toEqual([expect.stringContaining('"nope"')]);
  });

  it("takes the user's key and schema", () => {
    const schema = { type: "object", properties: { id: {}, name: {}, discoveredAt: {} } };
    const { keyProperties, ...selection } = only(
      edited({ name: { selected: false } }, { key_properties: ["id", "name"], schema }),
    );
    expect(keyProperties).toEqual(["id", "name"]);
    expect(selection.schema).toEqual(schema);
    expect(sent(selection, { id: "1", name: "x" })).toEqual({ id: "1", name: "x" });
  });

  it("adds the keys to a schema that lacks them", () => {
    const { schema, keyProperties } = only(
      edited({}, { schema: { type: "object", properties: { name: {} } } }),
    );
    expect(namesOf(schema)).toEqual(["id", "discoveredAt", "name"]);
    expect(keyProperties).toEqual(["id"]);
  });

  it("takes a catalog for the whole list of what may leave, at every depth", () => {
    const chosen = only(toSingerCatalog([PEOPLE]));
    const row = {
      ...{ id: "1", ssn: "s", name: "x", tags: [{ a: 1, b: 2 }, [{ b: 3 }], 4] },
      company: { domain: "d", ssn: "s", address: { city: "c", ssn: "s" } },
    };
    expect(sent(chosen, row)).toEqual({
      ...{ id: "1", name: "x", tags: [{ a: 1 }, [{}], 4] },
      company: { domain: "d", address: { city: "c" } },
    });
    expect(sent(chosen, { company: [{ ssn: "s", domain: "d" }] })).toEqual({ company: [{ domain: "d" }] });
  });

  it("lets out a field whose schema does not say what is in it as one value, and of an empty list of fields nothing", () => {
    const schema = {
      type: "object",
      properties: {
        id: {},
        open: { type: "object" },
        list: { type: "array" },
        closed: { type: "object", properties: {} },
      },
    };
    const chosen = only(edited({}, { schema }));
    const inner = { a: { b: 1 } };
    expect(sent(chosen, { id: "1", open: inner, list: [inner], closed: inner })).toEqual({
      ...{ id: "1", open: inner, list: [inner], closed: {} },
    });
  });

  it("takes the declared fields for the list where a catalog has no schema", () => {
    const { schema: _, ...entry } = { ...(toSingerCatalog([PEOPLE]).streams[0] as { schema: unknown }) };
    expect(sent(only({ streams: [entry] }), { id: "1", ssn: "s" })).toEqual({ id: "1" });
  });

  it.each<[string, Crumbs, Meta, boolean]>([
    ["its own", { "": { "replication-key": "discoveredAt" } }, {}, false],
    ["another one", { "": { "replication-key": "name" } }, {}, true],
    ["another one on the node", {}, { replication_key: "name" }, true],
    [
      "another one, which a full table does not need",
      { "": { "replication-key": "name", "replication-method": "FULL_TABLE" } },
      {},
      false,
    ],
    ["none", {}, { replication_key: null }, false],
  ])("honours the replication key or refuses it by name: %s", (_, crumbs, node, refused) => {
    const { refusals } = only(edited(crumbs, node));
    expect(refusals).toEqual(
      refused ? [expect.stringMatching(/"people" by the key "name": it has "discoveredAt"/)] : [],
    );
  });

  it("refuses a stream that is selected twice, whose rows would come twice and under the schema of one of both", () => {
    const entry = (selected: boolean, email: boolean): object => ({
      tap_stream_id: "people",
      metadata: [
        { breadcrumb: ["properties", "email"], metadata: { selected: email } },
        { breadcrumb: [], metadata: { selected } },
      ],
    });
    const catalogOf = (isAgain: boolean) => ({ streams: [entry(true, false), entry(isAgain, true)] });
    expect(() => select(catalogOf(true), streamsIn({}))).toThrow('it selects the stream "people" twice');
    expect(select(catalogOf(false), streamsIn({})).selections).toHaveLength(1);
  });

  it("reports selected streams that there are not, and a catalog that selects nothing", () => {
    const stranger = {
      tap_stream_id: "aliens",
      metadata: [{ breadcrumb: [], metadata: { selected: true } }],
    };
    expect(select({ streams: [stranger] }, [PEOPLE])).toMatchObject({ selections: [], unknown: ["aliens"] });
    expect(select(edited({ "": { selected: false } }), [PEOPLE]).warnings).toEqual([
      expect.stringContaining("selects no stream"),
    ]);
  });
});

/** One stream of each kind that a catalog can ask for. */
const KINDS: readonly DiscoveredStream[] = STREAMS.flatMap((spec) => {
  const schema = { type: "object", properties: { id: {}, name: {}, ...cursorIn(spec.name) } };
  return ["people", "sources", "email_checks"].includes(spec.name) ? [{ spec, schema, sampled: null }] : [];
});

function cursorIn(name: string): object {
  if (name === "people") return { discoveredAt: TIMESTAMP };
  return name === "email_checks" ? { checked_at: TIMESTAMP, email: {}, source: {} } : {};
}

/** What a program may write into the entry of a stream, and into its root metadata. */
const ENTRIES: readonly (readonly [node: Meta, root: Meta])[] = [
  [{}, {}],
  ...["INCREMENTAL", "FULL_TABLE", "LOG_BASED", null, 7, { a: 1 }].flatMap((method) =>
    [
      [{ replication_method: method }, {}],
      [{}, { "replication-method": method }],
      [{}, { "forced-replication-method": method }],
      [{ replication_method: "FULL_TABLE" }, { "replication-method": method }],
      [{ replication_method: method, replication_key: "name" }, {}],
    ].map(([node = {}, root = {}]): [Meta, Meta] => [node, root]),
  ),
  ...["discoveredAt", "name", "", null, ["id"], 3].flatMap((key): [Meta, Meta][] => [
    [{ replication_key: key }, {}],
    [{}, { "replication-key": key }],
    [{ replication_key: "other" }, { "replication-key": key }],
  ]),
  ...[["id"], ["name", "id"], ["nope"], ["no", "pe", "id"], [], [7, "id"], "id", null].map(
    (keys): [Meta, Meta] => [{ key_properties: keys }, {}],
  ),
  [{ selected: true }, {}],
  [{ selected: false }, {}],
  [{ selected: false }, { selected: true }],
  [{ selected: true }, { selected: false }],
  [{ selected: "no" }, {}],
  [{}, { selected: "yes" }],
  [{}, { selected: false, inclusion: "automatic" }],
  [{}, { "selected-by-default": true, selected: false }],
  [{}, { inclusion: "unsupported", "selected-by-default": true }],
];

it("selections mean what golden/selections.txt says", async () => {
  const lines = ENTRIES.flatMap(([node, root]) => [
    JSON.stringify(node) + (Object.keys(root).length === 0 ? "" : ` with root ${JSON.stringify(root)}`),
    ...KINDS.map((stream) => {
      const { name } = stream.spec;
      const metadata = [{ breadcrumb: [], metadata: { selected: true, ...root } }];
      const bare = "selected" in node || "selected-by-default" in root || "inclusion" in root;
      const entry = {
        ...{ tap_stream_id: name, schema: stream.schema },
        metadata: bare ? [{ breadcrumb: [], metadata: root }] : metadata,
        ...node,
      };
      const { selections, warnings, refusals } = select({ streams: [entry] }, [stream]);
      const [chosen] = selections;
      const what =
        chosen === undefined
          ? "not selected"
          : `${chosen.method}, key ${chosen.keyProperties.join(" ")}, cursor ${chosen.replicationKey}, fields ${namesOf(chosen.schema).join(" ")}`;
      return [`  ${name}: ${what}`, ...warnings, ...refusals].join("\n    ");
    }),
  ]);
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/selections.txt");
});

it.each<[Meta, string]>([
  [{ tap_stream_id: "aliens", stream: "people" }, "aliens"],
  [{ stream: "aliens" }, "aliens"],
  [{ tap_stream_id: 7 }, "7"],
  [{ tap_stream_id: ["a"] }, '["a"]'],
  [{}, ""],
])("select() calls the unknown stream of %j %j", (entry, name) => {
  const { unknown, selections, warnings } = select({ streams: [entry] }, [PEOPLE]);
  expect([unknown, selections, warnings]).toEqual([[name], [], []]);
});

describe("streamsIn()", () => {
  it("has every stream, with the fields and the sample of the catalog where it says them", () => {
    const schema = { type: "object", properties: { domain: {} } };
    const streams = streamsIn({
      streams: [
        { stream: "companies", schema, metadata: [{ breadcrumb: [], metadata: { sampled: true } }] },
        { tap_stream_id: "sources", stream: "people", schema },
        { tap_stream_id: "people", schema: { type: "object" }, metadata: [{ metadata: { sampled: 1 } }] },
        null,
        {
          tap_stream_id: "email_checks",
          metadata: [{ breadcrumb: ["properties"], metadata: { sampled: false } }],
        },
      ],
    });
    expect(streams.map(({ spec }) => spec.name)).toEqual(STREAMS.map(({ name }) => name));
    const [people, companies, sources, , , checks] = streams;
    expect(companies).toMatchObject({ schema, sampled: true });
    expect(sources).toMatchObject({ schema, sampled: null });
    expect(people).toMatchObject({ schema: loadSchema("people"), sampled: null });
    expect(checks).toMatchObject({ schema: loadSchema("email_checks"), sampled: null });
    for (const nothing of [undefined, null, [], "x", { streams: {} }])
      expect(streamsIn(nothing)).toEqual(
        STREAMS.map((spec) => ({ spec, schema: loadSchema(spec.name), sampled: null })),
      );
  });
});

it("select() tells of streams in the order of the catalog", () => {
  const schema = { properties: { domain: {}, discoveredAt: TIMESTAMP } };
  const streams = streamsIn({ streams: [{ tap_stream_id: "companies", schema }] });
  const entries = ["people", "nobody", "companies", "sources", "noone"].map((name) => ({
    ...{ tap_stream_id: name, replication_key: "other", key_properties: ["none"] },
    metadata: [{ breadcrumb: [], metadata: { selected: true, "replication-method": "INCREMENTAL" } }],
  }));
  const { selections, unknown, refusals, warnings } = select({ streams: entries }, streams);
  expect(selections.map(({ stream }) => stream)).toEqual(["people", "companies", "sources"]);
  expect(unknown).toEqual(["nobody", "noone"]);
  expect(refusals.map((text) => /"(\w+)"/.exec(text)?.[1])).toEqual(["people", "companies"]);
  expect(warnings.map((text) => text.slice(0, 22))).toEqual([
    'Stream "people" has no',
    'Stream "companies" has',
    'Stream "sources" has n',
    'Stream "sources" canno',
  ]);
});
