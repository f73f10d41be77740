import type { Resume } from "../state/resume.ts";
import { Checkpoints } from "../streams/checkpoints.ts";
import { NEW_STATE } from "../streams/dated-state.ts";
import { type Event, recordsOf, type StreamState } from "../streams/event.ts";
import { parallel } from "../streams/merge.ts";
import { planWindows } from "../streams/plan.ts";
import { measureAll, measureDays, type Range, type ReadSettings } from "../streams/range.ts";
import { readWindow } from "../streams/read-window.ts";
import type { StreamApi } from "../streams/stream-api.ts";
import type { Planned, RunRules } from "../streams/window-result.ts";
import { WindowSize } from "../streams/window-size.ts";

/** How the rows of a stream can be had. */
export type Source = {
  /** In windows of days, or all at once. */
  readonly isDated: boolean;
  readonly isExported: boolean;
  /** Whether there is a list, and so counts and pages. */
  readonly isListed: boolean;
  readonly onMissingKey: RunRules["onMissingKey"];
};

/** One stream to read. */
export type StreamTask = {
  readonly stream: string;
  readonly source: Source;
  readonly api: StreamApi;
  readonly resumed: Resume;
  readonly settings: ReadSettings;
  /** Monotonic ms after which no further window begins; undefined is never. */
  readonly endsAt: number | undefined;
};

/** Reads one stream: state in, windows of rows, checkpoints out. Every stage is a pulled generator of batches. */
export async function* readStream(task: StreamTask): AsyncGenerator<Event> {
  const { stream, api, resumed, settings } = task;
  if (resumed.kind === "delivered") {
    yield* delivered(stream, resumed.state);
    return;
  }
  if (resumed.why !== undefined) yield { kind: "log", level: "warn", text: resumed.why };
  const range = await measure(task, resumed.state);
  const { count } = range;
  if (count.known) yield { kind: "estimate", stream, rows: count.rows + count.undated };
  const checkpoints = new Checkpoints(stream, range, settings.ignoreMissingDays);
  const limit = new TimeLimit(task.endsAt, api);
  const totals = { rows: 0, passes: 0 };
  const rules = rulesOf(task, range, () => {
    totals.passes += 1;
  });
  const steps = parallel(planWindows(range, rules), settings.numWorkers, {
    isAlone: ({ window }) => window.kind !== "closed",
    begins: (planned) => limit.lets(planned),
    read: (planned: Planned) => readWindow(planned, rules),
  });
  for await (const step of steps) {
    if (step.kind === "part") {
      totals.rows += step.part.lines.length;
      yield* recordsOf(stream, step.part, api.now(), step.index);
    } else yield* checkpoints.finish(step.index, step.item, step.result);
  }
  yield* checkpoints.close({ ...totals, isTimeUp: limit.isReached, now: api.now() });
}

/** Nothing is left to deliver, but the platform wants to be told so. */
function* delivered(stream: string, state: StreamState): Generator<Event> {
  yield { kind: "checkpoint", stream, state };
  yield { kind: "close", stream, complete: true };
}

/** Counts what there is to read. A full refresh that a wrong clock has put into the future begins again. */
async function measure({ stream, source, api, settings }: StreamTask, saved: Range["state"]): Promise<Range> {
  if (!source.isDated) {
    const isCounted = settings.verifyCounts && source.isListed && source.isExported;
    return await measureAll(saved, isCounted, api);
  }
  const range = await measureDays(saved, settings, api);
  if (range.kind !== "ahead") return range;
  const { discoveredAt, filters, full_refresh } = saved;
  const what = `The state of "${stream}" says ${discoveredAt}, which is later than the service's clock`;
  const then =
    full_refresh === null
      ? "nothing is read and the state stays as it is. Reset the stream's state if that is a mistake"
      : "the full refresh begins again";
  api.notify({ kind: "log", level: "warn", text: `${what}: ${then}` });
  return full_refresh === null
    ? range
    : await measureDays({ ...NEW_STATE, filters, full_refresh }, settings, api);
}

function rulesOf({ source, api, settings }: StreamTask, range: Range, onPass: () => void): RunRules {
  const { isExported, isListed, onMissingKey } = source;
  return {
    ...{ api, isExported, isListed, onMissingKey, onPass },
    verifyCounts: settings.verifyCounts && isListed,
    yesterday: range.yesterday,
    until: range.until,
    idleMs: settings.idleTimeoutSeconds * 1000,
    ignoredDays: new Set(settings.ignoreMissingDays),
    windowSize: new WindowSize(settings.maxWindowRows),
  };
}

/** Ends a plan at the first window end after a moment, but not before the run has come further than what it must repeat. */
class TimeLimit {
  isReached = false;
  #hasBegun = false;
  readonly #endsAt: number;
  readonly #api: StreamApi;

  /** @param endsAt monotonic ms; undefined is never */
  constructor(endsAt: number | undefined, api: StreamApi) {
    this.#endsAt = endsAt ?? Number.POSITIVE_INFINITY;
    this.#api = api;
  }

  /** Whether a window may still begin. */
  lets({ purpose, window }: Planned): boolean {
    this.isReached = this.#hasBegun && this.#api.monotonic() >= this.#endsAt;
    this.#hasBegun ||= purpose !== "missing" && window.kind !== "undated";
    return !this.isReached;
  }
}
