import { describe, expect, it } from "vitest";
import { inferSchema } from "../../../src/api/infer-schema.ts";
import { parseConfiguredCatalog, toCatalog } from "../../../src/catalog/airbyte.ts";
import { loadSchema } from "../../../src/catalog/schema.ts";
import { STREAMS } from "../../../src/catalog/streams.ts";
import { ConfigError } from "../../../src/errors.ts";
import { CATALOG_RULES, catalogBreaks } from "../../support/catalog-rules.ts";

const declared = STREAMS.map((spec) => ({ spec, schema: loadSchema(spec.name) }));
const sampled = declared.map(({ spec, schema }) => ({
  spec,
  schema: spec.sampled
    ? inferSchema(schema, [{ discoveredAt: "2026-01-02T03:04:05Z", size: 3, tags: [{}] }])
    : schema,
}));

const stream = (changes: object): object => ({
  streams: [
    {
      name: "a",
      json_schema: { type: "object", properties: { id: { type: "string" } } },
      supported_sync_modes: ["full_refresh"],
      source_defined_primary_key: [["id"]],
      ...changes,
    },
  ],
});
const schemaOf = (id: object): object => stream({ json_schema: { type: "object", properties: { id } } });

/** A broken catalog for each rule, so that no rule can pass everything. */
const BROKEN: Readonly<Record<string, object>> = {
  CD1: { streams: [] },
  CD2: { streams: [{ name: "a" }, { name: "a" }] },
  CD3: schemaOf({ type: "text" }),
  CD4: stream({ default_cursor_field: ["at"] }),
  CD5: schemaOf({ $ref: "#" }),
  CD6: stream({ supported_sync_modes: [] }),
  CD7: schemaOf({ additionalProperties: false }),
  CD8: schemaOf({ type: ["null", "object"] }),
  CD10: schemaOf({ type: "integer", airbyte_type: "timestamp_with_timezone" }),
  CD11: stream({ source_defined_primary_key: [] }),
};

describe("toCatalog()", () => {
  it.each(CATALOG_RULES)("$id: $says", ({ id, broken }) => {
    expect(broken(toCatalog(declared))).toEqual([]);
    expect(broken(toCatalog(sampled))).toEqual([]);
    expect(broken(stream({}))).toEqual([]);
    expect(broken(BROKEN[id])).not.toEqual([]);
  });

  it.each([
    ["a removed stream", { streams: [] }],
    ["a removed field", stream({ json_schema: { type: "object", properties: {} } })],
    ["another type", schemaOf({ type: "integer" })],
    ["another format", schemaOf({ type: "string", format: "date" })],
    ["another key", stream({ source_defined_primary_key: [["other"]] })],
    ["another cursor", stream({ default_cursor_field: ["id"] })],
  ])("CD9: notices %s", (_, catalog) => {
    expect(catalogBreaks(stream({}), stream({}))).toEqual([]);
    expect(catalogBreaks(stream({}), catalog)).not.toEqual([]);
  });

  it("makes companies incremental only where the records carry discoveredAt", () => {
    expect(toCatalog(declared).streams[1]).toEqual({
      name: "companies",
      json_schema: declared[1]?.schema,
      supported_sync_modes: ["full_refresh"],
      source_defined_cursor: false,
      source_defined_primary_key: [["domain"]],
      is_resumable: false,
    });
    expect(toCatalog(sampled).streams[1]).toMatchObject({
      supported_sync_modes: ["full_refresh", "incremental"],
      source_defined_cursor: true,
      default_cursor_field: ["discoveredAt"],
    });
  });

  it("has no cursor that is no timestamp", () => {
    const schema = inferSchema(loadSchema("companies"), [{ discoveredAt: "yesterday" }]);
    expect(toCatalog([{ spec: STREAMS[1], schema }]).streams[0]?.supported_sync_modes).toEqual([
      "full_refresh",
    ]);
  });

  it("says which streams go on after a break", () => {
    expect(toCatalog(sampled).streams.map((entry) => [entry.name, entry.is_resumable])).toEqual([
      ["people", true],
      ["companies", false],
      ["sources", false],
      ["company_lookups", false],
      ["company_lookup_contacts", false],
      ["email_checks", false],
      ["email_verifications", false],
      ["sync_windows", false],
    ]);
  });

  it("offers no full refresh of what would be bought again", () => {
    const { streams } = toCatalog(declared);
    for (const entry of streams.slice(3)) expect(entry.supported_sync_modes).toEqual(["incremental"]);
    expect(streams[5]).toMatchObject({
      source_defined_cursor: true,
      default_cursor_field: ["checked_at"],
      source_defined_primary_key: [["email"], ["source"]],
    });
  });
});

describe("parseConfiguredCatalog()", () => {
  it("takes a catalog as discover prints it for all its streams, incremental where they can be", () => {
    const catalog = toCatalog(sampled);
    for (const value of [catalog, { type: "CATALOG", catalog }]) {
      const streams = parseConfiguredCatalog(JSON.parse(JSON.stringify(value)));
      expect(streams.map(({ name }) => name)).toEqual(STREAMS.map(({ name }) => name));
      expect(streams[0]).toMatchObject({
        name: "people",
        syncMode: "incremental",
        destinationSyncMode: null,
      });
      expect(streams[2]).toMatchObject({ syncMode: "full_refresh", schema: expect.any(Object) });
    }
  });

  const BARE = {
    name: "people",
    syncMode: "full_refresh",
    destinationSyncMode: null,
    generationId: null,
    syncId: null,
    schema: null,
  };

  it("reads every key, and ignores others", () => {
    const entry = {
      stream: { name: "people", json_schema: { properties: { id: {}, email: {} } }, namespace: null },
      sync_mode: "incremental",
      destination_sync_mode: "append_dedup",
      generation_id: 7,
      minimum_generation_id: 0,
      sync_id: 12,
      include_files: null,
    };
    expect(parseConfiguredCatalog({ streams: [entry], other: 1 })).toEqual([
      {
        name: "people",
        syncMode: "incremental",
        destinationSyncMode: "append_dedup",
        ...{ generationId: 7, minimumGenerationId: 0, syncId: 12 },
        schema: { properties: { id: {}, email: {} } },
      },
    ]);
  });

  it("tells streams of one name apart by their namespace", () => {
    const entry = (namespace: string | null): object => ({ stream: { name: "people", namespace } });
    const streams = parseConfiguredCatalog({ streams: [entry("eu"), entry("us"), entry("")] });
    expect(streams.map(({ name, namespace }) => [name, namespace])).toEqual([
      ["people", "eu"],
      ["people", "us"],
      ["people", undefined],
    ]);
    expect(() => parseConfiguredCatalog({ streams: [entry("eu"), entry("eu")] })).toThrow('"people" twice');
    expect(() => parseConfiguredCatalog({ streams: [entry(null), entry("")] })).toThrow("twice");
  });

  it.each(["company_lookups", "email_checks", "sync_windows"])(
    "takes a stream once that brings nothing twice, whatever its namespace: %s",
    (name) => {
      const streams = ["eu", "us"].map((namespace) => ({ stream: { name, namespace } }));
      expect(() => parseConfiguredCatalog({ streams })).toThrow(`it has the stream "${name}" twice`);
    },
  );

  it("needs no more than a name", () => {
    const ids = { generation_id: null, sync_id: null, destination_sync_mode: null };
    const nulls = { stream: { name: "people", json_schema: null }, ...ids };
    for (const entry of [{ stream: { name: "people" } }, nulls])
      expect(parseConfiguredCatalog({ streams: [entry] })).toEqual([BARE]);
  });

  it("hands on streams and modes that it does not know", () => {
    const entry = { stream: { name: "no_such_stream" }, sync_mode: "INVALID" };
    expect(parseConfiguredCatalog({ streams: [entry] })).toEqual([
      { ...BARE, name: "no_such_stream", syncMode: "INVALID" },
    ]);
  });

  it.each<[entry: object, read: object]>([
    [{ sync_mode: "full_refresh" }, { syncMode: "full_refresh" }],
    [{ sync_mode: "incremental" }, { syncMode: "incremental" }],
    [{ sync_mode: null }, { syncMode: "full_refresh" }],
    [{ supported_sync_modes: ["full_refresh"] }, { syncMode: "full_refresh" }],
    [{ supported_sync_modes: ["full_refresh", "incremental"] }, { syncMode: "incremental" }],
    [
      { supported_sync_modes: ["full_refresh", "incremental"], sync_mode: "full_refresh" },
      { syncMode: "full_refresh" },
    ],
    [{ supported_sync_modes: "incremental" }, { syncMode: "full_refresh" }],
    [
      { namespace: "eu", json_schema: { properties: { a: {} } } },
      { namespace: "eu", schema: { properties: { a: {} } } },
    ],
    [{ namespace: 7, json_schema: { type: "object" } }, {}],
    [{ generation_id: 3, sync_id: 4 }, {}],
  ])("reads of a stream as discover prints it %j", (entry, read) => {
    const [stream] = parseConfiguredCatalog({ streams: [{ name: "people", ...entry }] });
    expect(stream).toEqual({ ...BARE, ...read });
  });

  it.each([
    [0, 0],
    [-1, -1],
    [1.5, null],
    ["7", null],
    [true, null],
  ])("takes %j for the id %j", (given, id) => {
    const ids = { generation_id: given, minimum_generation_id: given, sync_id: given };
    const [stream] = parseConfiguredCatalog({ streams: [{ stream: { name: "people" }, ...ids }] });
    expect([stream?.generationId, stream?.minimumGenerationId ?? null, stream?.syncId]).toEqual([id, id, id]);
  });

  it.each([
    [7, 'Cannot use the catalog: it is not an object with a list "streams"'],
    [{ catalog: [] }, 'it is not an object with a list "streams"'],
    [
      { streams: [{ name: "a" }, 7] },
      'streams[1] has neither a "stream" with a "name", nor a "name" of its own',
    ],
    [{ streams: [{ name: "" }] }, "streams[0] has neither"],
    [
      { streams: [{ name: "a" }, { name: "b" }, { name: "b" }, { name: "a" }] },
      'it has the stream "b" twice',
    ],
  ])("says of %j what is wrong", (value, said) => {
    expect(() => parseConfiguredCatalog(value)).toThrow(said);
  });

  it.each([
    [undefined, "streams"],
    [[], "streams"],
    [{ streams: {} }, "streams"],
    [{ streams: [null] }, "streams[0]"],
    [{ streams: [{ stream: { name: "a" } }, { title: "people" }] }, "streams[1]"],
    [{ streams: [{ stream: { name: "" } }] }, "streams[0]"],
    [{ streams: [{ stream: { name: "a" } }, { stream: { name: "a" } }] }, '"a" twice'],
  ])("refuses %j", (value, why) => {
    expect(() => parseConfiguredCatalog(value)).toThrow(ConfigError);
    expect(() => parseConfiguredCatalog(value)).toThrow(why);
  });
});
