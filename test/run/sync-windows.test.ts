import { expect, it } from "vitest";
import { PROOF, SyncWindows } from "../../src/run/sync-windows.ts";
import type { Event, WindowRecord } from "../../src/streams/event.ts";

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
