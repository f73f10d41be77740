import { describe, expect, it } from "vitest";
import { type RowStreamSpec, STREAMS } from "../../../src/catalog/streams.ts";
import { ConfigError, NotFoundError, TransientError } from "../../../src/errors.ts";
import { checkFieldNames, sample } from "../../../src/run/sample.ts";
import type { Session } from "../../../src/run/session.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import type { Batch, Row } from "../../../src/streams/stream-api.ts";
import { apiWith } from "../../support/run-rules.ts";

const PEOPLE = STREAMS.find(({ name }) => name === "people") as RowStreamSpec;

it.each([
  ["rows", 10, 100, 4],
  ["bytes", 1_000_000, 20_000_000, 4],
])("reads no further than so many %s", async (_, most, width, batches) => {
  let read = 0;
  const batch: Batch = {
    rows: [1, 2, 3].map((id) => ({
      ...{ key: `${id}`, cursor: null },
      raw: `{"id":${id},"x":"${"x".repeat(width / 3)}"}` as RawLine,
    })),
  };
  const stream = async function* (): AsyncGenerator<Batch> {
    for (; read < 100; ) {
      read += 1;
      yield batch;
    }
  };
  const session = { streamApi: () => apiWith({ stream }) } as unknown as Session;
  const rows = await sample(PEOPLE, {}, session, most);
  expect([read, rows.length]).toEqual([batches, Math.min(most, 3 * batches)]);
});

it.each([true, false])(
  "shows no row that is suppressed, in an export or else in a list: %s",
  async (isExported) => {
    const rows: Row[] = [undefined, true, false].map((isHeld, id) => ({
      ...{ key: `${id}`, cursor: null, isHeld, raw: `{"id":${id}}` as RawLine },
    }));
    const stream = async function* (): AsyncGenerator<Batch> {
      yield { rows };
    };
    const api = apiWith({ stream, page: async () => ({ rows, size: 10, total: 3 }) });
    const spec = STREAMS.find(({ name }) => name === (isExported ? "people" : "sources")) as RowStreamSpec;
    const shown = await sample(spec, {}, { streamApi: () => api } as unknown as Session);
    // Nobody is named by a source, so of these none is held back.
    expect(shown).toEqual(isExported ? [{ id: 0 }, { id: 2 }] : [{ id: 0 }, { id: 1 }, { id: 2 }]);
  },
);

describe("checkFieldNames()", () => {
  /** Checks against people, companies and sources, of which companies fail; returns what was asked for and what was found. */
  async function checked(error?: Error, undeclared: readonly string[] = ["x"]) {
    const asked: string[] = [];
    const found: string[][] = [];
    const batchOf = (json: string): Batch => ({ rows: [{ key: "1", cursor: null, raw: json as RawLine }] });
    const session = {
      streams: STREAMS,
      privacy: {
        undeclared,
        refuseUnknown: (live: ReadonlySet<string>) => void found.push([...live].sort()),
      },
      streamApi: ({ name }: RowStreamSpec) =>
        apiWith({
          stream: async function* () {
            asked.push(name);
            if (name === "companies" && error !== undefined) throw error;
            yield batchOf(`{"of_${name}":1,"nested":{"deep":1}}`);
          },
          page: async () => {
            asked.push(name);
            return { ...batchOf('{"of_sources":1}'), size: 1_000, total: null };
          },
        }),
    } as unknown as Session;
    await checkFieldNames(session);
    return { asked, found };
  }

  it("looks at every stream of rows, and asks for nothing where the schemas have all names", async () => {
    expect(await checked()).toEqual({
      asked: ["people", "companies", "sources"],
      found: [["deep", "nested", "nested.deep", "of_companies", "of_people", "of_sources"]],
    });
    expect(await checked(undefined, [])).toEqual({ asked: [], found: [] });
  });

  it.each([
    ["is not there", new NotFoundError("no such path"), undefined],
    ["is not on the plan", new ConfigError("no", { code: "ENDPOINT_NOT_ON_PLAN" }), undefined],
    ["refuses the key", new ConfigError("no", { code: "INVALID_API_KEY" }), "no"],
    ["does not answer", new TransientError("silence"), "silence"],
  ])("goes on without a stream that %s, or fails", async (_, error, said) => {
    if (said === undefined) expect((await checked(error)).found[0]).not.toContain("of_companies");
    else await expect(checked(error)).rejects.toThrow(said);
  });
});
