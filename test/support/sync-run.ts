import type { Day } from "../../src/base/time.ts";
import {
  type Coverage,
  covered,
  isProven,
  missingDaysOf,
  put,
  type Span,
  withoutDays,
  withStatus,
} from "../../src/sync/coverage.ts";
import type { Event } from "../../src/sync/event.ts";
import type { Source } from "../../src/sync/prepare.ts";
import type { ReadSettings } from "../../src/sync/range.ts";
import { type RowStream, readRows } from "../../src/sync/read-stream.ts";
import type { Service } from "../../src/sync/service.ts";
import { NEW_STATE, type RowState } from "../../src/sync/state.ts";

const SETTINGS: ReadSettings = {
  startDate: null,
  endDate: null,
  lookbackWindowDays: 1,
  rereadDays: 0,
  maxWindowRows: 250_000,
  numWorkers: 2,
  verifyCounts: true,
  ignoreMissingDays: [],
};

const PEOPLE: Source = { isDated: true, isExported: true, isListed: true, onMissingKey: "reject" };

const REFRESH = { generation_id: 1, sync_id: 1, done: false };

export type RunOptions = {
  readonly state?: RowState | null;
  readonly settings?: Partial<ReadSettings>;
  readonly source?: Partial<Source>;
  readonly isFullRefresh?: boolean;
  /** Digest of the API key's id. */
  readonly key?: string;
  /** Monotonic ms after which no further window begins. */
  readonly endsAt?: number;
  /** Stops after this many events, as a killed process does. */
  readonly stopAfter?: number;
};

/** What a run delivered. */
export type Ran = Awaited<ReturnType<typeof runStream>>;

/** Runs a stream to its end, to its error, or to where it is cut. */
export async function runStream(service: Service, options: RunOptions = {}) {
  const { state: before = null, settings, source, isFullRefresh = false, endsAt, key = "key" } = options;
  const { stopAfter = Number.POSITIVE_INFINITY } = options;
  const events: Event[] = [];
  const notify: Service["notify"] = (notice) => {
    events.push(notice);
    service.notify(notice);
  };
  const run: RowStream = {
    ...{ stream: "people", service: { ...service, notify }, key, endsAt },
    source: { ...PEOPLE, ...source },
    state: { ...(before ?? NEW_STATE), full_refresh: isFullRefresh ? REFRESH : null },
    settings: { ...SETTINGS, ...settings },
  };
  let error: unknown;
  try {
    for await (const event of readRows(run)) {
      events.push(event);
      if (events.length >= stopAfter) break;
    }
  } catch (thrown) {
    error = thrown;
  }
  const last = events.findLast((event) => event.kind === "checkpoint")?.state;
  const close = events.find((event) => event.kind === "close");
  /** The last checkpoint, read back from JSON; the state before the run if there was none. */
  const state = last === undefined ? before : (JSON.parse(JSON.stringify(last)) as RowState);
  const days = state?.days ?? [];
  return {
    ...{ events, state, error: error ?? close?.error },
    complete: error === undefined && close?.complete === true,
    /** In the order in which they were emitted. */
    lines: events.flatMap((event) => (event.kind === "records" ? event.lines : [])),
    /** What the state says: days that are missing, ranges to read again, and ranges that were read without a hole. */
    ...{
      missing: missingDaysOf(days),
      again: withStatus(days, "again"),
      covered: covered(days.filter(isProven)),
    },
  };
}

/** The state of a run, with some days as missing. */
export function withMissing({ state }: Ran, ...days: readonly string[]): RowState {
  const known = (state?.days ?? []).flatMap((span) => {
    const cut = days.filter((day) => day >= span.from && day <= span.to);
    return cut.length === 0 ? [span] : uncoveredOf(span, cut);
  });
  return {
    ...NEW_STATE,
    ...state,
    days: days.reduce<Coverage>((all, day) => put(all, [day as Day, day as Day], "missing"), known),
  };
}

/** The missing days of a state. */
export const missingOf = (state: RowState | null): readonly string[] => missingDaysOf(state?.days ?? []);

/** What is left of a span without some days. */
const uncoveredOf = (span: Span, days: readonly string[]): readonly Span[] =>
  withoutDays(
    [[span.from, span.to]],
    days.map((day) => day as Day),
  ).map(([from, to]) => ({ ...span, from, to }));

/** Lines by id; the latest of each id. */
export function byId(lines: readonly string[]): Map<string, string> {
  return new Map(lines.map((line) => [String(JSON.parse(line).id), line]));
}

/** Lines that came more than once. */
export function repeated(lines: readonly string[]): string[] {
  const seen = new Set<string>();
  return lines.filter((line) => seen.size === seen.add(line).size);
}

/** A service that no part of it may be asked of, save what a test gives. */
export function apiWith(given: Partial<Service>): Service {
  const absent = (): never => {
    throw new Error("Not asked for");
  };
  const reads = { pageSize: 10, count: absent, stream: absent, rowAt: absent, page: absent };
  const others = { sources: absent, backOff: absent, now: () => 0, monotonic: () => 0, notify: () => {} };
  return { ...reads, ...others, ...given };
}
