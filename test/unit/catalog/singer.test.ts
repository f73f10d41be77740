import { describe, expect, it } from "vitest";
import { TIMESTAMP } from "../../../src/catalog/schema.ts";
import { methodsOf, toSingerCatalog } from "../../../src/catalog/singer.ts";
import { STREAMS } from "../../../src/catalog/streams.ts";
import { LOOKUPS, PEOPLE } from "../../support/tap-streams.ts";

describe("toSingerCatalog()", () => {
  const [people, lookups] = JSON.parse(JSON.stringify(toSingerCatalog([PEOPLE, LOOKUPS]))).streams;

  it("names the stream, its keys and its method", () => {
    expect(people).toMatchObject({ tap_stream_id: "people", stream: "people", key_properties: ["id"] });
    expect(people).toMatchObject({ replication_key: "discoveredAt", replication_method: "INCREMENTAL" });
    expect(lookups).not.toHaveProperty("replication_key");
    expect(people.metadata[0]).toEqual({
      breadcrumb: [],
      metadata: {
        inclusion: "available",
        "selected-by-default": true,
        "table-key-properties": ["id"],
        "valid-replication-keys": ["discoveredAt"],
        "forced-replication-method": "INCREMENTAL",
      },
    });
    expect(lookups.metadata[0].metadata).toMatchObject({
      "selected-by-default": false,
      "valid-replication-keys": [],
      sampled: false,
    });
  });

  it.each([
    ["people", true, ["INCREMENTAL", "FULL_TABLE"]],
    ["companies", false, ["FULL_TABLE"]],
    ["sources", true, ["FULL_TABLE"]],
    ["email_checks", true, ["INCREMENTAL"]],
  ])("reads %s as its cursor allows", (name, hasDates, methods) => {
    const spec = STREAMS.find((one) => one.name === name);
    if (spec === undefined) throw new Error(`There is no stream ${name}`);
    const schema = { type: "object", properties: hasDates ? { discoveredAt: TIMESTAMP } : {} };
    expect(methodsOf({ spec, schema, sampled: null })).toEqual(methods);
  });

  it("has metadata for every property, nested ones too, and for none below arrays", () => {
    const inclusions = people.metadata
      .slice(1)
      .map(({ breadcrumb, metadata }: { breadcrumb: string[]; metadata: { inclusion: string } }) => [
        breadcrumb.join("/"),
        metadata.inclusion,
      ]);
    expect(Object.fromEntries(inclusions)).toEqual({
      "properties/id": "automatic",
      "properties/discoveredAt": "automatic",
      "properties/name": "available",
      "properties/company": "available",
      "properties/company/properties/id": "available",
      "properties/company/properties/domain": "available",
      "properties/company/properties/address": "available",
      "properties/company/properties/address/properties/city": "available",
      "properties/company/properties/address/properties/zip": "available",
      "properties/tags": "available",
    });
  });
});
