import { DEADLINE } from "./error-table.ts";

/** Ends a request before its answer does: at a deadline, or with the run. */
export type Deadline = {
  /** Its reason says why the request was ended. */
  readonly signal: AbortSignal;
  /** From now on only the end of the run ends the request. */
  lift(): void;
  /** The request is over. */
  close(): void;
};

/**
 * @param totalMs the time from the request to the end of its answer
 * @param graceMs the time that the request still has when the run is to end
 */
export function openDeadline(run: AbortSignal, totalMs: number, graceMs: number): Deadline {
  const controller = new AbortController();
  const passed = Object.assign(new Error("The deadline has passed"), { code: DEADLINE });
  const timer = setTimeout(() => controller.abort(passed), totalMs);
  const end = (): void => controller.abort(run.reason);
  const endWithRun = (): void => {
    if (graceMs === 0) end();
    else setTimeout(end, graceMs).unref();
  };
  if (run.aborted) endWithRun();
  else run.addEventListener("abort", endWithRun, { once: true });
  const lift = (): void => clearTimeout(timer);
  const close = (): void => {
    lift();
    run.removeEventListener("abort", endWithRun);
  };
  return { signal: controller.signal, lift, close };
}
