import { type Dated, type Limits, readDated } from "../../src/sync/dated.ts";
import type { Event } from "../../src/sync/event.ts";
import type { Progress } from "../../src/sync/frontier.ts";
import type { Ports } from "../../src/sync/ports.ts";

export const LIMITS: Limits = {
  startDate: null,
  endDate: null,
  lookbackDays: 1,
  maxRows: 250_000,
  concurrency: 2,
  verify: true,
  ignoredDays: [],
  deadline: undefined,
};

/** What a run delivered. */
export type Ran = {
  readonly events: readonly Event[];
  /** Lines in the order in which they were emitted. */
  readonly lines: readonly string[];
  /** The last checkpoint, read back from JSON. */
  readonly progress: Progress | null;
  readonly complete: boolean;
  readonly error: unknown;
};

export type RunOptions = {
  readonly resume?: Progress | null;
  readonly limits?: Partial<Limits>;
  readonly saysDone?: boolean;
  /** Stops after this many events, as a killed process does. */
  readonly stopAfter?: number;
};

/** Runs a dated stream to its end, to its error, or to where it is cut. */
export async function runDated(ports: Ports, options: RunOptions = {}): Promise<Ran> {
  const { resume = null, limits, saysDone = false, stopAfter = Number.POSITIVE_INFINITY } = options;
  const dated: Dated = {
    stream: "people",
    resume,
    limits: { ...LIMITS, ...limits },
    ports,
    toState: (progress, done) => ({ progress, done }),
    saysDone,
  };
  const events: Event[] = [];
  let error: unknown;
  try {
    for await (const event of readDated(dated)) {
      events.push(event);
      if (events.length >= stopAfter) break;
    }
  } catch (thrown) {
    error = thrown;
  }
  return summary(events, resume, error);
}

function summary(events: readonly Event[], resume: Progress | null, thrown: unknown): Ran {
  const lines = events.flatMap((event) => (event.kind === "records" ? [...event.lines] : []));
  const states = events.flatMap((event) => (event.kind === "checkpoint" ? [event.state] : []));
  const last = states.at(-1);
  const progress = last === undefined ? resume : (JSON.parse(JSON.stringify(last["progress"])) as Progress);
  const close = events.find((event) => event.kind === "close");
  return {
    events,
    lines,
    progress,
    complete: close?.kind === "close" && close.complete && thrown === undefined,
    error: thrown ?? (close?.kind === "close" ? close.error : undefined),
  };
}

/** Lines by id; the latest of each id. */
export function byId(lines: readonly string[]): Map<string, string> {
  return new Map(lines.map((line) => [String(JSON.parse(line).id), line]));
}

/** Lines that came more than once. */
export function repeated(lines: readonly string[]): string[] {
  return lines.filter((line, at) => lines.indexOf(line) !== at);
}
