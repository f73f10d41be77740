import { expect } from "vitest";
import { addDays, type Day } from "../../src/base/time.ts";
import type { ReadSettings } from "../../src/sync/range.ts";
import { type ModelOptions, ModelService, type Person, peopleOn } from "./model-service.ts";
import { byId, type Ran, type RunOptions, repeated, runStream } from "./sync-run.ts";

export const NOW = Date.parse("2026-03-20T10:00:00.500Z");
export const TODAY = "2026-03-20" as Day;
export const DAY_MS = 86_400_000;

export const day = (text: string): Day => text as Day;

/** Days up to today, oldest first. */
export const lastDays = (count: number): Day[] =>
  Array.from({ length: count }, (_, nth) => addDays(TODAY, nth + 1 - count));

/** People of some days, none of them later than five seconds ago. */
export const peopleOf = (days: readonly string[], perDay: number): Person[] =>
  peopleOn(days, perDay).filter(({ at }) => at === null || at < NOW - 5_000);

export const serviceOf = (people: Person[], options: Partial<ModelOptions> = {}): ModelService =>
  new ModelService({ now: NOW, people, ...options });

export type SyncOptions = Omit<RunOptions, "settings"> & Partial<ReadSettings>;

/** Runs a stream of a service. */
export function sync(service: ModelService, options: SyncOptions = {}): Promise<Ran> {
  const { state, source, isFullRefresh, endsAt, key: _key, stopAfter, ...settings } = options;
  return runStream(service.api(settings.verifyCounts), { ...options, settings });
}

/** Expects that a run delivered every row once. */
export function expectAll(service: ModelService, ran: Ran): void {
  expect(ran).toMatchObject({ complete: true, error: undefined });
  expect(byId(ran.lines)).toEqual(service.served());
  expect(repeated(ran.lines)).toEqual([]);
}

/** The days of lines, each once. */
export const daysIn = (lines: readonly string[]): string[] => [
  ...new Set(lines.map((line) => String(JSON.parse(line).discoveredAt).slice(0, 10))),
];

/** The ids of lines, sorted. */
export const idsIn = (lines: readonly string[]): string[] => [...byId(lines).keys()].sort();

/** The ids of the people who were discovered on a day or later, sorted. */
export const idsSince = ({ people }: ModelService, from: string): string[] =>
  people
    .filter(({ at }) => (at ?? 0) >= Date.parse(from))
    .map(({ id }) => id)
    .sort();
