import { describe, expect, it } from "vitest";
import type { DiscoveredStream } from "../../../src/catalog/airbyte.ts";
import { propertiesOf, TIMESTAMP } from "../../../src/catalog/schema.ts";
import { toSingerCatalog } from "../../../src/catalog/singer.ts";
import { type Selection, select } from "../../../src/catalog/singer-selection.ts";
import { JOB_STREAMS, PEOPLE as PEOPLE_SPEC, type StreamSpec } from "../../../src/catalog/streams.ts";
import { lineRewriter } from "../../../src/privacy/line-rewriter.ts";

const PEOPLE: DiscoveredStream = {
  spec: PEOPLE_SPEC,
  schema: {
    type: "object",
    required: ["id", "name"],
    properties: {
      id: { type: "string" },
      discoveredAt: TIMESTAMP,
      name: { type: ["string", "null"] },
      company: { type: "object", properties: { domain: {}, address: { properties: { city: {}, zip: {} } } } },
      tags: { type: "array", items: { type: "object", properties: { a: {} } } },
      open: { type: "object" },
    },
  },
  isComplete: true,
};
const LOOKUPS: DiscoveredStream = {
  ...{ spec: JOB_STREAMS[0] as StreamSpec, schema: { type: "object", properties: { job_id: {} } } },
  isComplete: false,
};

type Meta = Readonly<Record<string, unknown>>;
type Edit = { readonly node?: Meta; readonly fields?: Readonly<Record<string, Meta>> };

/** The catalog of discovery for people, edited: its entry, and metadata by dotted path, "" for the stream itself. */
function edited({ node = {}, fields = {} }: Edit): object {
  const [entry] = JSON.parse(JSON.stringify(toSingerCatalog([PEOPLE]))).streams;
  for (const { breadcrumb, metadata } of entry.metadata)
    Object.assign(metadata, fields[breadcrumb.filter((part: string) => part !== "properties").join(".")]);
  return { streams: [{ ...entry, ...node }] };
}

/** Selects people by an edited catalog. */
const chosen = (edit: Edit): Selection & { readonly said: readonly string[] } => {
  const { streams, warnings } = select(edited(edit));
  const selection = streams[0]?.selection;
  if (selection === undefined) throw new Error("People are not selected");
  return { ...selection, said: warnings };
};

/** Returns the row as it leaves. */
const sent = ({ rules }: Pick<Selection, "rules">, row: object): unknown =>
  JSON.parse(lineRewriter(rules)(JSON.stringify(row)));

describe("a catalog of Singer", () => {
  it("as discovery prints it reads the same streams, with all their fields", () => {
    const { streams, warnings } = select(toSingerCatalog([PEOPLE, LOOKUPS]));
    expect(streams.map(({ configured }) => configured.name)).toEqual(["people"]);
    expect(streams[0]?.selection).toMatchObject({ schema: PEOPLE.schema, keyProperties: ["id"] });
    expect(warnings).toEqual([]);
  });

  const [YES, NO] = [{ selected: true }, { selected: false }];
  const NOT_BY_DEFAULT = { "selected-by-default": false };

  it.each<[what: string, stream: Meta, node: Meta, isRead: boolean]>([
    ["selected", YES, {}, true],
    ["selected on its node only, and not by default", NOT_BY_DEFAULT, YES, true],
    ["selected in metadata, not on its node", YES, NO, false],
    ["unsupported", { ...YES, inclusion: "unsupported" }, {}, false],
    ["without any metadata", {}, { metadata: [] }, true],
    ["not selected by default", NOT_BY_DEFAULT, {}, false],
  ])("decides on a stream that is %s", (_, stream, node, isRead) => {
    const { streams } = select(edited({ node, fields: { "": stream, id: YES } }));
    expect(streams).toHaveLength(isRead ? 1 : 0);
  });

  it.each<[what: string, metadata: Meta, leaves: boolean]>([
    ["available", {}, true],
    ["automatic, though deselected", { inclusion: "automatic", selected: false }, true],
    ["unsupported, though selected", { inclusion: "unsupported", selected: true }, false],
    ["not selected by default, yet selected", { ...NOT_BY_DEFAULT, ...YES }, true],
  ])("decides in rows and schemas on a field that is %s", (_, metadata, leaves) => {
    const selection = chosen({ fields: { name: metadata } });
    expect(Object.hasOwn(propertiesOf(selection.schema), "name")).toBe(leaves);
    expect(selection.schema["required"]).toEqual(leaves ? ["id", "name"] : ["id"]);
    expect(sent(selection, { id: "1", name: "x" })).toEqual(leaves ? { id: "1", name: "x" } : { id: "1" });
  });

  const ROW = {
    ...{ id: "1", discoveredAt: "d", ssn: "s", name: "x", tags: [{ a: 1, b: 2 }, [{ b: 3 }], 4] },
    ...{ company: { domain: "d", ssn: "s", address: { city: "c", zip: "z" } }, open: { any: { x: 1 } } },
  };
  const LISTED = {
    ...{ id: "1", discoveredAt: "d", name: "x", tags: [{ a: 1 }, [{}], 4], open: { any: { x: 1 } } },
    company: { domain: "d", address: { city: "c", zip: "z" } },
  };

  it.each<[what: string, edit: Edit, left: object]>([
    ["lists all that may leave, at every depth", {}, LISTED],
    [
      "of which a nested field is deselected",
      { fields: { "company.address.zip": NO } },
      { ...LISTED, company: { domain: "d", address: { city: "c" } } },
    ],
    [
      "of which an object is deselected",
      { fields: { company: NO, "company.domain": YES } },
      { ...LISTED, company: undefined },
    ],
    [
      "that deselects key and cursor still lets them out",
      { fields: { id: NO, discoveredAt: { inclusion: "unsupported" } } },
      LISTED,
    ],
    [
      "with a schema of its own",
      { node: { schema: { properties: { name: {}, open: { properties: {} } } } } },
      { id: "1", discoveredAt: "d", name: "x", open: {} },
    ],
    [
      "without metadata of its fields",
      { node: { metadata: [{ breadcrumb: [], metadata: { selected: true } }] } },
      LISTED,
    ],
  ])("%s", (_, edit, left) => {
    const selection = chosen(edit);
    expect(sent(selection, ROW)).toEqual(left);
    expect(Object.keys(propertiesOf(selection.schema)).toSorted()).toEqual(
      Object.keys(JSON.parse(JSON.stringify(left))).toSorted(),
    );
  });

  it("without a schema lets out the declared fields", () => {
    const row = { id: "1", ssn: "s", lastName: "x" };
    expect(sent(chosen({ node: { schema: undefined } }), row)).toEqual({ id: "1", lastName: "x" });
  });

  it.each<[edit: Edit, read: Partial<Selection>, said: string | null]>([
    [{}, { method: "INCREMENTAL", keyProperties: ["id"], replicationKey: "discoveredAt" }, null],
    [{ node: { replication_method: "FULL_TABLE" } }, { method: "FULL_TABLE" }, null],
    [{ fields: { "": { "replication-method": "FULL_TABLE" } } }, { method: "FULL_TABLE" }, null],
    [
      { node: { replication_method: "INCREMENTAL" }, fields: { "": { "replication-method": "FULL_TABLE" } } },
      { method: "FULL_TABLE" },
      null,
    ],
    [{ node: { replication_method: "LOG_BASED" } }, { method: "INCREMENTAL" }, 'by "LOG_BASED"'],
    [{ node: { key_properties: ["id", "name"] } }, { keyProperties: ["id", "name"] }, null],
    [{ node: { key_properties: ["id", "nope"] } }, { keyProperties: ["id"] }, 'no field "nope"'],
    [{ node: { key_properties: "id" } }, { keyProperties: ["id"] }, null],
    [{ node: { replication_key: null } }, { method: "INCREMENTAL" }, null],
    [
      { fields: { "": { "replication-key": "name", "replication-method": "FULL_TABLE" } } },
      { method: "FULL_TABLE" },
      null,
    ],
  ])("with %j is read with %j, and says %j", (edit, read, said) => {
    const selection = chosen(edit);
    expect(selection).toMatchObject(read);
    expect(selection.said).toEqual(said === null ? [] : [expect.stringContaining(said)]);
  });

  it.each<[edit: Edit]>([
    [{ node: { replication_key: "name" } }],
    [{ fields: { "": { "replication-key": "name" } } }],
  ])("with %j is refused, because it expects rows that would not come", (edit) => {
    expect(() => chosen(edit)).toThrow('"people" by the key "name": it has "discoveredAt"');
  });

  it.each<[what: string, catalog: unknown, why: RegExp]>([
    ["nothing", null, /it has no list "streams"/],
    ["an object without streams", {}, /it has no list "streams"/],
    ["Airbyte's", { streams: [{ stream: { name: "people" } }] }, /catalog of Airbyte.*--discover/],
    ["of Airbyte's discovery", { streams: [{ name: "people", json_schema: {} }] }, /catalog of Airbyte/],
    ["one with a stream twice", { streams: [{ stream: "people" }, { stream: "people" }] }, /"people" twice/],
  ])("that is %s is refused, because it would read nothing or rows twice", (_, catalog, why) => {
    expect(() => select(catalog)).toThrow(why);
  });

  it("that selects nothing is warned of, and unknown streams are named", () => {
    const { warnings } = select(edited({ fields: { "": NO } }));
    expect(warnings).toEqual([expect.stringContaining("selects no stream")]);
    const streams = [{ tap_stream_id: "aliens", stream: "people" }, { stream: "ghosts" }, {}];
    expect(
      select({ streams }).streams.map(({ configured, selection }) => [configured.name, selection]),
    ).toEqual([
      ["aliens", undefined],
      ["ghosts", undefined],
      ["", undefined],
    ]);
  });
});
