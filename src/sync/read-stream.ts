import { Checkpoints } from "./checkpoints.ts";
import { uncovered } from "./coverage.ts";
import type { Event } from "./event.ts";
import type { Source } from "./outcome.ts";
import { parallel } from "./parallel.ts";
import { type Planned, planWindows } from "./plan.ts";
import { prepare } from "./prepare.ts";
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
  const { stream, service, settings } = run;
  const prepared = await prepare(run);
  const { state, plan, rules } = prepared;
  const { known, rows, undated } = prepared.count;
  if (known) yield { kind: "estimate", stream, rows: rows + undated };
  const days = plan && { yesterday: rules.yesterday, missing: plan.missing, more: settings.rereadDays };
  const checkpoints = new Checkpoints(stream, state, days);
  const limit = new TimeLimit(run);
  const steps = parallel(planWindows(prepared, rules), settings.numWorkers, {
    // The days up to now are read last, because rows move only towards today.
    isLast: ({ window }) => window.kind === "open" || window.kind === "all",
    begins: (planned) => limit.allows(planned),
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
  yield* checkpoints.close(limit.isUp);
}

/** Ends a run between two windows. Before, the run reads days that no state covers, so that a long lookback ends some time. */
class TimeLimit {
  isUp = false;
  readonly #run: RowStream;
  #isFurther = false;

  constructor(run: RowStream) {
    this.#run = run;
  }

  allows({ window, count, why }: Planned): boolean {
    const { service, endsAt = Number.POSITIVE_INFINITY, state } = this.#run;
    this.isUp = this.#isFurther && service.monotonic() >= endsAt;
    const hasRows = count?.known !== true || count.rows > 0;
    const isNew =
      why === "turn" ||
      (window.kind === "closed" && uncovered(state.days, [window.from, window.to]).length > 0);
    this.#isFurther ||= (hasRows && isNew) || why === "retry" || window.kind === "open";
    return !this.isUp;
  }
}
