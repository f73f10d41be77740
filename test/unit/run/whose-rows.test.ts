import { describe, expect, it } from "vitest";
import { BodyError, ConfigError, TransientError, UnreachableError } from "../../../src/errors.ts";
import { fingerprint } from "../../../src/fingerprint.ts";
import { ofSameRows } from "../../../src/run/whose-rows.ts";
import { NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import type { Row } from "../../../src/streams/stream-api.ts";
import { apiWith } from "../../support/run-rules.ts";

const rowOf = (key: string): Row => ({ raw: "{}" as RawLine, key, cursor: "2026-03-02T12:00:00Z" });
const rowsOf = (...keys: string[]) => ({ rows: keys.map(rowOf) });

const witnessOf = (cursor: string) => ({
  ...{ key: "svc_1", cursor, keys: ["known", "other"].map(fingerprint) },
});

/**
 * What becomes of a state under the key `svc_2`, and what was asked.
 * @param page the keys on a page of the list; an error instead: it fails there
 * @param exported the keys in each batch of the export
 */
async function asked(
  page: (number: number) => readonly string[] | Error,
  exported: readonly (readonly string[])[] = [],
  cursor = "2026-03-02T12:00:00Z",
) {
  const requests: unknown[] = [];
  const api = apiWith({
    page: async (window, number) => {
      requests.push([number, window]);
      const keys = page(number);
      if (keys instanceof Error) throw keys;
      return { ...rowsOf(...keys), size: 2, total: null };
    },
    stream: async function* (window) {
      requests.push(["export", window]);
      for (const keys of exported) yield rowsOf(...keys);
    },
  });
  const state = { ...NEW_STATE, witness: witnessOf(cursor) };
  const result = await ofSameRows(state, "people", "svc_2", api).catch((error: unknown) => error);
  return { result, requests: requests as [number | "export", { from: string }][] };
}

const TAKEN = { witness: { key: "svc_2", keys: witnessOf("").keys } };

describe("a state under another key", () => {
  it("is asked for only if it remembers rows under another key", async () => {
    const api = apiWith({});
    const witness = witnessOf("2026-03-02T12:00:00Z");
    for (const state of [NEW_STATE, { ...NEW_STATE, witness: { ...witness, key: "svc_2" } }])
      expect(await ofSameRows(state, "people", "svc_2", api)).toBe(state);
  });

  it("is taken where a page of the list shows a row that it remembers", async () => {
    const { result, requests } = await asked((number) => (number === 3 ? ["x", "known"] : ["x", "y"]));
    expect(result).toMatchObject(TAKEN);
    expect(requests.map(([what]) => what)).toEqual([1, 2, 3]);
    expect(requests[0]?.[1]).toEqual({ kind: "open", from: "2026-03-02", undated: false });
  });

  it.each([
    ["no day before the first that can be asked for", "1969-03-02T12:00:00Z", "1970-01-02"],
    ["the day of the oldest row that it remembers", "2026-03-02T00:00:00.000Z", "2026-03-02"],
  ])("is looked for from %s", async (_, cursor, from) => {
    const { requests } = await asked(() => ["known"], [], cursor);
    expect(requests[0]?.[1].from).toBe(from);
  });

  it.each<[string, (number: number) => readonly string[] | Error, number]>([
    ["the list ends", (number) => (number > 2 ? [] : ["x"]), 3],
    ["the list fails", (number) => (number > 1 ? new BodyError("The list breaks") : ["x"]), 2],
    ["the list cannot be asked", () => new ConfigError("There is no list"), 1],
    ["the list is longer than a hundred pages", () => ["x"], 100],
  ])("is looked for in the export where %s", async (_, page, pages) => {
    const found = await asked(page, [["x"], ["other"]]);
    expect(found.result).toMatchObject(TAKEN);
    expect(found.requests.map(([what]) => what)).toEqual([
      ...Array.from({ length: pages }, (_page, nth) => nth + 1),
      "export",
    ]);
    const lost = await asked(page, [["x"], ["y"]]);
    expect(lost.result).toBeInstanceOf(ConfigError);
    expect((lost.result as Error).message).toContain(
      'Cannot use the state of "people": the API key is another',
    );
  });

  it.each([new UnreachableError("The service is down"), new Error("A slip")])(
    "is neither taken nor refused after %o",
    async (error) => {
      const { result, requests } = await asked(() => error, [["known"]]);
      expect(result).toBe(error);
      expect(requests).toHaveLength(1);
    },
  );

  it("is looked for in the export after an error that passes", async () => {
    const { result } = await asked(() => new TransientError("Too many requests"), [["known"]]);
    expect(result).toMatchObject(TAKEN);
  });
});
