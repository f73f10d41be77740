import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import {
  parseState,
  parseStateText,
  type SavedState,
  stateKey,
  streamOfKey,
} from "../../../src/state/envelopes.ts";

const people = { discoveredAt: "2026-01-02T23:59:59.999Z", missing_days: [], filters: null };
const companies = { discoveredAt: null, missing_days: ["2026-01-01"] };

const blobsOf = ({ streams }: SavedState): object => Object.fromEntries(streams);

/** A stream state as platforms and PyAirbyte hand it back. */
const streamState = (name: string, savedState: unknown): object => ({
  stream: { stream_descriptor: { name, namespace: null }, stream_state: savedState },
  ...{ type: "STREAM", global: null, global_: null, data: null, id: 3 },
  ...{ sourceStats: { recordCount: 2000.0, rejectedRecordCount: null }, destinationStats: null },
});

type Blobs = Readonly<Record<string, object>>;
const list = (blobs: Blobs): object[] =>
  Object.entries(blobs).map(([name, savedState]) => streamState(name, savedState));
const streamStates = (blobs: Blobs): object[] =>
  Object.entries(blobs).map(([name, stream_state]) => ({ stream_descriptor: { name }, stream_state }));

/** Every envelope around blobs, by who writes it. */
const ENVELOPES: Readonly<Record<string, (blobs: Blobs) => unknown>> = {
  "Airbyte's list": list,
  "a list of whole messages": (blobs) => list(blobs).map((state) => ({ type: "STATE", state })),
  "GLOBAL in a list": (blobs) => {
    const global = { shared_state: { lsn: 1 }, stream_states: streamStates(blobs) };
    return [{ type: "GLOBAL", global, stream: null }];
  },
  "GLOBAL as Python writes it": (blobs) => ({
    type: "GLOBAL",
    global_: { shared_state: null, stream_states: streamStates(blobs) },
  }),
  "GLOBAL without a type": (blobs) => ({ global: { stream_states: streamStates(blobs) } }),
  "LEGACY in a list": (blobs) => [{ type: "LEGACY", data: blobs }],
  "LEGACY around bookmarks": (blobs) => ({ type: "LEGACY", data: { bookmarks: blobs } }),
  "streams alone": (blobs) => ({ sources: null, ...blobs }),
  "Singer's bookmarks": (blobs) => ({ bookmarks: blobs }),
  "what Meltano prints": (blobs) => ({ singer_state: { bookmarks: blobs } }),
  "Meltano's state file": (blobs) => ({ completed: { singer_state: { bookmarks: blobs } }, partial: {} }),
  "Meltano's state file of an unfinished run": (blobs) => ({
    completed: {},
    partial: { singer_state: { bookmarks: blobs } },
  }),
  "a Singer message": (blobs) => ({ type: "STATE", value: { bookmarks: blobs } }),
  "what a tap around an Airbyte source left": (blobs) => ({
    stream_descriptor: { name: "people" },
    stream_state: {},
    airbyte_state: list(blobs),
  }),
};
const names = fc.constantFrom("people", "companies", "sources", "company_lookups", "other stream");
const savedState = fc.dictionary(fc.stringMatching(/^[a-z_]{1,6}$/), fc.jsonValue({ maxDepth: 1 }), {
  maxKeys: 4,
});
const blobs = fc.dictionary(names, savedState, { minKeys: 1 });

describe("parseState()", () => {
  it.each(Object.entries(ENVELOPES))(
    "gives back what was put into %s, as value and as text",
    (_, envelope) => {
      fc.assert(
        fc.property(blobs, (written) => {
          const saved = { people, companies, ...written };
          const text = JSON.stringify(envelope(saved));
          expect(blobsOf(parseState(JSON.parse(text)))).toEqual(JSON.parse(JSON.stringify(saved)));
          expect(blobsOf(parseStateText(`\uFEFF${text}\n`))).toEqual(JSON.parse(JSON.stringify(saved)));
        }),
        { numRuns: 10 },
      );
    },
  );

  it("takes a null state for a reset, and the last of two", () => {
    expect(blobsOf(parseState([streamState("people", people), streamState("people", null)]))).toEqual({});
    expect(blobsOf(parseState({ bookmarks: { people: null, companies } }))).toEqual({ companies });
    const twice = [streamState("people", people), streamState("people", companies)];
    expect(blobsOf(parseState(twice))).toEqual({ people: companies });
  });

  it("tells streams of one name apart by their namespace, in every form of Airbyte's", () => {
    const descriptor = { name: "people", namespace: "eu" };
    const there = new Map([["eu/people", people]]);
    const stream = { stream_descriptor: descriptor, stream_state: people };
    for (const form of [
      [{ type: "STREAM", stream }],
      { type: "GLOBAL", global: { stream_states: [stream] } },
      { bookmarks: { "eu/people": people } },
    ]) {
      expect(parseState(form).streams).toEqual(there);
    }
    expect(stateKey("people", undefined)).toBe("people");
    expect(streamOfKey(stateKey("people", "prod/eu"))).toBe("people");
    const nowhere = { stream_descriptor: { name: "people", namespace: "" }, stream_state: people };
    expect([...parseState([{ stream: nowhere }]).streams.keys()]).toEqual(["people"]);
  });

  it("keeps other keys of a Singer state", () => {
    const state = { bookmarks: { people }, currently_syncing: "people", mine: { a: 1 } };
    expect(parseState({ singer_state: state }).rest).toEqual({ currently_syncing: "people", mine: { a: 1 } });
  });

  it("merges an unfinished run over a finished one, as Meltano does", () => {
    const finished = { singer_state: { bookmarks: { people: { ...people, old: 1 }, companies } } };
    const unfinished = { singer_state: { bookmarks: { people: { discoveredAt: "2026-01-05T00:00:00Z" } } } };
    expect(blobsOf(parseState({ completed: finished, partial: unfinished }))).toEqual({
      people: { ...people, old: 1, discoveredAt: "2026-01-05T00:00:00Z" },
      companies,
    });
  });

  it.each([
    ["text", "it is not a state, but string"],
    [[null, { bookmarks: { people } }], "a list of null"],
    [[{}, { bookmarks: { people } }], "a list of object"],
    [people, '"discoveredAt" (string), "missing_days" (array)'],
    [{ type: "RECORD", record: { email: "hunter2" } }, '"type" (string), "record" (object)'],
    [{ type: "STREAM", stream: { stream_state: people } }, "stream_descriptor"],
    [{ type: "LEGACY", data: { cursor: "hunter2" } }, '"cursor" (string)'],
    [{ bookmarks: ["hunter2"] }, '"bookmarks" (array)'],
    [{ type: "GLOBAL", global: { shared_state: { lsn: 1 } } }, '"shared_state" (object)'],
    [{ stateType: "stream", state: {}, streamState: [] }, '"stateType" (string)'],
    [{ type: "SCHEMA", stream: "people", schema: {} }, '"stream" (string)'],
    [{ completed: {}, partail: { singer_state: {} } }, '"partail" (object)'],
    [[streamState("people", people), { cursor: 1 }], '"cursor" (number)'],
  ])("refuses %j and names its shape", (value, shape) => {
    expect(() => parseState(value)).toThrow(ConfigError);
    expect(() => parseState(value)).toThrow(shape);
    expect(() => parseState(value)).not.toThrow("hunter2");
  });
});

describe("parseStateText()", () => {
  const line = (value: object): string => JSON.stringify(value);
  const row = { id: "1", state: { bookmarks: { people: {} } } };
  const record = line({ type: "RECORD", stream: "people", record: row });

  it("reads the saved output of an Airbyte read, the last state of each stream", () => {
    const output = [
      line({ type: "TRACE", trace: {} }),
      line({ type: "STATE", state: streamState("people", companies) }),
      record,
      "some program said this",
      'some program said {"this": [',
      line({ type: "STATE", state: streamState("companies", companies) }),
      line({ type: "STATE", state: streamState("people", people) }),
      line({ type: "LOG", log: {} }),
    ].join("\r\n");
    expect(blobsOf(parseStateText(output))).toEqual({ people, companies });
  });

  it("reads the saved output of a Singer tap, or of a target", () => {
    const states = [{ bookmarks: { people: companies } }, { bookmarks: { people, companies } }];
    const tap = [record, ...states.map((value) => line({ type: "STATE", value }))].join("\n");
    expect(blobsOf(parseStateText(tap))).toEqual({ people, companies });
    expect(blobsOf(parseStateText(states.map(line).join("\n")))).toEqual({ people, companies });
  });

  it("ignores a last line that was cut", () => {
    const state = line({ type: "STATE", state: streamState("people", people) });
    expect(blobsOf(parseStateText(`${state}\n${state.slice(0, 40)}`))).toEqual({ people });
  });

  it.each([
    ["one object that was cut", '{"bookmarks": {"people": '],
    ["a state that was cut in the middle", `{"type":"STATE","value":{"bookm\n${record}\n{"bookmarks":{}}`],
    ["records only", `${record}\n${record}`],
    ["a record", record],
    ["plain text", "hunter2"],
  ])("refuses %s", (_, text) => {
    expect(() => parseStateText(text)).toThrow(ConfigError);
    expect(() => parseStateText(text)).not.toThrow("hunter2");
  });
});
