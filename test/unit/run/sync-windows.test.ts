import { expect, it } from "vitest";
import { PROOF, SyncWindows, waitingIn } from "../../../src/run/sync-windows.ts";
import type { Event, WindowRecord } from "../../../src/streams/event.ts";

const RECORD = { kind: "closed", first_day: "2026-03-01", last_day: "2026-03-02" } as WindowRecord;
const at = (ms: number): string => new Date(ms).toISOString();

/** The state after a checkpoint of a stream, in a run that begins with some states. */
function stateAfter(states: ReadonlyMap<string, unknown>, stream: string, now: number) {
  const event: Event = { kind: "checkpoint", stream, state: {}, records: [RECORD] };
  const noted = new SyncWindows(true, states, now).note(event, stream);
  return (noted as { state: Record<string, { run_started_at: string }[]> }).state;
}

it("a run begins after every run that left records, whatever the clock says", () => {
  const people = stateAfter(new Map(), "people", 9_000);
  const companies = stateAfter(new Map(), "companies", 5_000);
  for (const states of [
    new Map([
      ["people", people],
      ["companies", companies],
    ]),
    new Map([
      ["companies", companies],
      ["people", people],
    ]),
  ]) {
    const windows = stateAfter(states, "people", 1_000)[PROOF] ?? [];
    expect(windows.map(({ run_started_at }) => run_started_at)).toEqual([at(9_000), at(9_001)]);
  }
  const left = new Map<string, unknown>([[PROOF, { version: 1, run_started_at: at(20_000) }]]);
  expect(stateAfter(left, "people", 1_000)[PROOF]?.[0]?.run_started_at).toBe(at(20_001));
});

const left = (at: string) => new Map<string, unknown>([[PROOF, { version: 1, run_started_at: at }]]);
const waiting = (id: string, ms: number, ordinal = 0) => ({
  id,
  run_started_at: at(ms),
  ordinal,
  stream: "people",
});

it("records stand in the state of their own checkpoint, numbered over all streams, and in those after it", () => {
  const windows = new SyncWindows(true, new Map(), 5_000);
  const noted = (stream: string, ...records: WindowRecord[]) => {
    const event: Event = { kind: "checkpoint", stream, state: { version: 2 }, records };
    return (windows.note(event, stream) as { state: Record<string, unknown> }).state;
  };
  const undated = { kind: "undated", first_day: null, last_day: null } as WindowRecord;
  const run = { run_started_at: at(5_000) };
  const first = {
    id: `people 2026-03-01 2026-03-02 ${at(5_000)} 0`,
    ...run,
    ordinal: 0,
    stream: "people",
    ...RECORD,
  };
  const second = {
    id: `sources undated undated ${at(5_000)} 1`,
    ...run,
    ordinal: 1,
    stream: "sources",
    ...undated,
  };
  expect(noted("people", RECORD)).toEqual({ version: 2, [PROOF]: [first] });
  expect(noted("sources", undated)).toEqual({ version: 2, [PROOF]: [second] });
  expect(noted("people")).toEqual({ version: 2, [PROOF]: [first] });
  expect(noted("companies")).toEqual({ version: 2 });
  const close: Event = { kind: "close", stream: "people", complete: true };
  expect(windows.note(close, "people")).toBe(close);
});

it("a run that is not asked for records makes none, and keeps those that wait", () => {
  const states = new Map([["people", { [PROOF]: [waiting("a", 1_000)] }]]);
  const event: Event = { kind: "checkpoint", stream: "people", state: {}, records: [RECORD] };
  expect(new SyncWindows(false, states, 5_000).note(event, "people")).toMatchObject({
    state: { [PROOF]: [waiting("a", 1_000)] },
  });
});

it("the stream brings what waits, by run and number, and its state says up to which run", () => {
  const states = new Map([
    ["people", { [PROOF]: [waiting("c", 2_000, 1), waiting("d", 3_000)] }],
    ["sources", { [PROOF]: [waiting("b", 2_000, 0), waiting("a", 1_000, 5)] }],
  ]);
  const [records, checkpoint, close, ...more] = [...new SyncWindows(true, states, 1).read()];
  const ids = (records as { lines: readonly string[] }).lines.map((line) => JSON.parse(line).id);
  expect(ids).toEqual(["a", "b", "c", "d"]);
  expect(records).toMatchObject({ kind: "records", stream: PROOF, at: 3_001 });
  const state = { version: 1, run_started_at: at(3_000) };
  expect(checkpoint).toEqual({ kind: "checkpoint", stream: PROOF, state });
  expect([close, more]).toEqual([{ kind: "close", stream: PROOF, complete: true }, []]);
  for (const [before, until] of [
    [new Map(), null],
    [left(at(7_000)), at(7_000)],
  ] as const) {
    const [none, saved] = [...new SyncWindows(true, before, 1).read()];
    expect(none).toMatchObject({ lines: [] });
    expect(saved).toMatchObject({ state: { version: 1, run_started_at: until } });
  }
});

it("what has left waits no more, and neither does what is no record", () => {
  const all = [
    waiting("a", 1_000),
    waiting("b", 2_000),
    waiting("c", 2_001),
    { ...waiting("d", 9_000), id: 4 },
    null,
  ];
  const states = new Map<string, unknown>([
    ["crm/people", { [PROOF]: all }],
    ["sources", { [PROOF]: "x" }],
    ["companies", null],
  ]);
  const ids = (more: ReadonlyMap<string, unknown>) =>
    [...waitingIn(new Map([...states, ...more]))].map(([key, found]) => [
      key,
      found.map(({ id }) => id).join(""),
    ]);
  const rest = [
    ["sources", ""],
    ["companies", ""],
  ];
  expect(ids(new Map())).toEqual([["crm/people", "abc"], ...rest]);
  expect(ids(left(at(2_000)))).toEqual([["crm/people", "c"], ...rest, [PROOF, ""]]);
  expect(ids(new Map([[`crm/${PROOF}`, { run_started_at: at(1_000) }]]))).toEqual([
    ["crm/people", "bc"],
    ...rest,
    [`crm/${PROOF}`, ""],
  ]);
  expect(ids(new Map([[PROOF, { run_started_at: 7 }]]))).toEqual([
    ["crm/people", "abc"],
    ...rest,
    [PROOF, ""],
  ]);
});
