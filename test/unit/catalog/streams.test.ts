import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import { parseConfiguredCatalog, toCatalog } from "../../../src/catalog/airbyte.ts";
import { inferSchema } from "../../../src/catalog/infer-schema.ts";
import { loadSchema } from "../../../src/catalog/schema.ts";
import { JOB_STREAMS, listPathOf, ROW_STREAMS, STREAMS } from "../../../src/catalog/streams.ts";
import { parseConfig } from "../../../src/config/config.ts";

const account = { base_url: "https://contacts.example.com", api_key: "k" };

describe("the streams", () => {
  it("are at the paths that the config says", () => {
    const { endpoints } = parseConfig({ ...account, endpoints: { companies: "/v2/firms" } }, {});
    expect(ROW_STREAMS.map((spec) => listPathOf(spec, endpoints))).toEqual([
      "/api/v1/public/people",
      "/v2/firms",
      "/api/v1/public/sources",
    ]);
  });
});

const sampled = STREAMS.map((spec) => {
  const schema = loadSchema(spec.name);
  const rows = [{ discoveredAt: "2026-01-02T03:04:05Z", size: 3, tags: [{}] }];
  return { spec, schema: spec.sampled ? inferSchema(schema, rows) : schema };
});

describe("Airbyte's catalog", () => {
  it("offers no full refresh of what would be bought again", () => {
    const { streams } = toCatalog(sampled);
    const jobs = JOB_STREAMS.map(({ name }) => streams.find((entry) => entry.name === name));
    expect(jobs.map((entry) => entry?.supported_sync_modes)).toEqual(JOB_STREAMS.map(() => ["incremental"]));
    expect(streams.filter((entry) => entry.is_resumable).map(({ name }) => name)).toEqual(["people"]);
  });
});

describe("a configured catalog", () => {
  const parsed = (...streams: readonly object[]) => parseConfiguredCatalog({ streams });
  const MODE = { sync_mode: "full_refresh" };
  const A = { stream: { name: "a" }, ...MODE };

  it.each<[entry: object, read: object]>([
    [A, { name: "a", syncMode: "full_refresh", schema: null }],
    [{ name: "people" }, { syncMode: "incremental", destinationSyncMode: null, generationId: null }],
    [
      { ...A, sync_mode: "INVALID" },
      { name: "a", syncMode: "INVALID" },
    ],
    [
      { ...A, generation_id: 7, sync_id: 12 },
      { generationId: 7, syncId: 12 },
    ],
    [
      { ...A, generation_id: 1.5, sync_id: "7" },
      { generationId: null, syncId: null },
    ],
    [{ stream: { name: "a", namespace: "eu" }, ...MODE }, { namespace: "eu" }],
    [
      { name: "a", supported_sync_modes: ["incremental"], sync_mode: "full_refresh" },
      { syncMode: "full_refresh" },
    ],
  ])("with the stream %j asks for %j", (entry, read) => {
    expect(parsed(entry)).toEqual([expect.objectContaining(read)]);
  });

  it("may be what discover prints, which asks for every stream, incremental where it can be", () => {
    const catalog = JSON.parse(JSON.stringify(toCatalog(sampled)));
    for (const value of [catalog, { type: "CATALOG", catalog }]) {
      const streams = parseConfiguredCatalog(value);
      expect(streams.map(({ name }) => name)).toEqual(STREAMS.map(({ name }) => name));
      expect(streams.filter(({ syncMode }) => syncMode === "full_refresh").map(({ name }) => name)).toEqual([
        "sources",
      ]);
    }
  });

  it("tells streams of one name apart by their namespace, but not those that would buy twice", () => {
    const entry = (namespace: string | null, name = "people"): object => ({
      stream: { name, namespace },
      ...MODE,
    });
    expect(parsed(entry("eu"), entry("us"), entry("")).map(({ namespace }) => namespace)).toEqual([
      ...["eu", "us", undefined],
    ]);
    for (const name of ["company_lookups", "email_checks"])
      expect(() => parsed(entry("eu", name), entry("us", name))).toThrow(`the stream "${name}" twice`);
  });

  it.each<[value: unknown, why: string]>([
    [7, 'it has no list "streams"'],
    [{ streams: {} }, '"streams"'],
    [{ streams: [{ name: "a" }, { title: "people" }] }, "streams[1] lacks"],
    [{ streams: [{ stream: { name: "" } }] }, "streams[0] lacks"],
    [{ streams: [{ name: "a" }, A] }, 'it has the stream "a" twice'],
  ])("that is %j is refused", (value, why) => {
    expect(() => parseConfiguredCatalog(value)).toThrow(ConfigError);
    expect(() => parseConfiguredCatalog(value)).toThrow(why);
  });
});
