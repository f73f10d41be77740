import { describe, expect, it } from "vitest";
import { select } from "../../src/source/selection.ts";
import { type JsonSchema, toSingerCatalog } from "../../src/source/singer-catalog.ts";
import { LOOKUPS, PEOPLE } from "../support/offers.ts";

type Meta = Record<string, unknown>;
type Crumbs = Record<string, Meta>;

/** The catalog of discovery, as edited: metadata by dotted path, `""` for the root. */
function edited(crumbs: Crumbs, node: Meta = {}, offer = PEOPLE): object {
  const [entry] = JSON.parse(JSON.stringify(toSingerCatalog([offer]))).streams;
  for (const item of entry.metadata) {
    const path = item.breadcrumb.filter((part: string) => part !== "properties").join(".");
    Object.assign(item.metadata, crumbs[path]);
  }
  return { streams: [{ ...entry, ...node }] };
}

const only = (catalog: object, offer = PEOPLE) => {
  const { selections, warnings } = select(catalog, [offer]);
  expect(selections).toHaveLength(1);
  return { ...selections[0], warnings };
};

const namesOf = (schema: unknown): string[] => Object.keys((schema as { properties: JsonSchema }).properties);

describe("select()", () => {
  it("takes the streams selected by default, whole, without a catalog", () => {
    const { selections } = select(undefined, [PEOPLE, LOOKUPS]);
    expect(selections.map(({ stream, method, pruning }) => [stream, method, pruning])).toEqual([
      ["people", "INCREMENTAL", undefined],
    ]);
  });

  it("takes the catalog of discovery as it is", () => {
    const { selections, warnings, unknown } = select(toSingerCatalog([PEOPLE, LOOKUPS]), [PEOPLE, LOOKUPS]);
    expect(selections.map(({ stream }) => stream)).toEqual(["people"]);
    expect(selections[0]).toMatchObject({ schema: PEOPLE.schema, keyProperties: ["id"], pruning: undefined });
    expect([...warnings, ...unknown]).toEqual([]);
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
    const { schema, pruning } = only(edited(crumbs));
    expect(namesOf(schema).includes("name")).toBe(stays);
    expect(pruning?.fields.get("name")).toBe(stays ? undefined : "drop");
    expect(schema).toHaveProperty("required", stays ? ["id", "name"] : ["id"]);
  });

  it("keeps a field without metadata", () => {
    const { pruning } = only(edited({}, { metadata: [{ breadcrumb: [], metadata: { selected: true } }] }));
    expect(pruning).toBeUndefined();
  });

  it("never drops keys or the replication key", () => {
    const { schema, pruning } = only(
      edited({
        ...{ id: { inclusion: "available", selected: false }, name: { selected: false } },
        discoveredAt: { inclusion: "unsupported" },
      }),
    );
    expect(namesOf(schema)).toEqual(["id", "discoveredAt", "company", "tags"]);
    expect([pruning?.fields.get("id"), pruning?.fields.get("discoveredAt")]).toEqual(["keep", "keep"]);
  });

  it("prunes nested fields, and with a parent all of its children", () => {
    const { schema, pruning } = only(edited({ "company.address.zip": { selected: false } }));
    expect(schema).toMatchObject({
      properties: { company: { properties: { address: { properties: { city: {} } } } } },
    });
    expect(JSON.stringify(schema)).not.toContain("zip");
    expect(pruning?.fields.get("company")).toMatchObject({ others: "keep" });
    expect(pruning?.others).toBe("drop");
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
    const { keyProperties, pruning, ...selection } = only(
      edited({ name: { selected: false } }, { key_properties: ["id", "name"], schema }),
    );
    expect(keyProperties).toEqual(["id", "name"]);
    expect(selection.schema).toEqual(schema);
    expect(pruning).toBeUndefined();
  });

  it("adds the keys to a schema that lacks them", () => {
    const { schema, keyProperties } = only(
      edited({}, { schema: { type: "object", properties: { name: {} } } }),
    );
    expect(namesOf(schema)).toEqual(["id", "discoveredAt", "name"]);
    expect(keyProperties).toEqual(["id"]);
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
    expect(select("nonsense", [PEOPLE]).warnings).toHaveLength(1);
  });
});
