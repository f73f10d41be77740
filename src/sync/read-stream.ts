import { Checkpoints } from "./checkpoints.ts";
import { uncovered } from "./coverage.ts";
import type { Event } from "./event.ts";
import { parallel } from "./parallel.ts";
import { type Planned, planWindows } from "./plan.ts";
import { prepare, type Source } from "./prepare.ts";
import type { ReadSettings } from "./range.ts";
import { readWindow } from "./read-window.ts";
import type { Service } from "./service.ts";
import type { RowState } from "./state.ts";
import { spanName } from "./window.ts";

/** One stream to read. */
export type RowStream = {
  readonly stream: string;
  readonly source: Source;
  readonly service: Service;
  readonly state: RowState;
  readonly settings: ReadSettings;
  /** Digest of the API key's id. */
  readonly key: string;
  /** Monotonic ms after which no further window begins; undefined: never. */
  readonly endsAt?: number | undefined;
};

/** Reads one stream: plans, reads several windows at the same time, and yields a checkpoint after each window. */
export async function* readRows(run: RowStream): AsyncGenerator<Event> {
  const { stream, service, settings, endsAt = Number.POSITIVE_INFINITY } = run;
  const prepared = await prepare(run);
  const { state, plan, rules } = prepared;
  const { known, rows, undated } = prepared.count;
  if (known) yield { kind: "estimate", stream, rows: rows + undated };
  const days = plan && { yesterday: rules.yesterday, missing: plan.missing, more: settings.rereadDays };
  const checkpoints = new Checkpoints(stream, state, days);
  let [isUp, isFurther] = [false, false];
  const begins = (planned: Planned): boolean => {
    isUp = isFurther && service.monotonic() >= endsAt;
    isFurther ||= makesProgress(planned, run.state);
    return !isUp;
  };
  const steps = parallel(planWindows(prepared, rules), settings.numWorkers, {
    // The days up to now are read last, because rows move only towards today.
    isLast: ({ window }) => window.kind === "open" || window.kind === "all",
    begins,
    read: (planned) => readWindow(planned, rules),
  });
  for await (const { index, item, part } of steps) {
    if (part === undefined || "window" in part) yield* checkpoints.add(index, part);
    else {
      const why = state.full_refresh === null ? item.why : "new";
      const place = { window: index, span: spanName(item.window), why };
      yield { kind: "records", stream, at: service.now(), ...place, ...part };
    }
  }
  yield* checkpoints.close(isUp);
}

/**
 * Whether a window does more than repeat the lookback. `endsAt` ends a run only after a window that does more.
 * Otherwise a long lookback would use the whole time of every run.
 */
function makesProgress({ window, count, why }: Planned, { days }: RowState): boolean {
  if (why === "retry" || window.kind === "open") return true;
  if (count?.known === true && count.rows === 0) return false;
  return why === "turn" || (window.kind === "closed" && uncovered(days, [window.from, window.to]).length > 0);
}
