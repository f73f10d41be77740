import { DEADLINE } from "./error-table.ts";

export type Deadline = ReturnType<typeof openDeadline>;

/**
 * Aborts a request at a deadline, or at the end of the run.
 * @param totalMs the time from the request to the end of its answer
 * @param graceMs the additional time after the end of the run
 */
export function openDeadline(run: AbortSignal, totalMs: number, graceMs: number) {
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
  /** Removes the deadline. Then only the end of the run aborts the request. */
  const lift = (): void => clearTimeout(timer);
  /** Frees the resources of an ended request. */
  const close = (): void => {
    lift();
    run.removeEventListener("abort", endWithRun);
  };
  return { signal: controller.signal, lift, close };
}
