import { DEADLINE } from "./error-table.ts";

/** Ends a request before its answer does: at a deadline, or with the run. */
export class RequestDeadline {
  readonly #run: AbortSignal;
  readonly #controller = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  readonly #endWithRun: () => void;

  /**
   * @param totalMs the time from the request to the end of its answer
   * @param graceMs the time that the request still has when the run is to end
   */
  constructor(run: AbortSignal, totalMs: number, graceMs = 0) {
    this.#run = run;
    const end = (reason: unknown): void => this.#controller.abort(reason);
    const passed = Object.assign(new Error("The deadline has passed"), { code: DEADLINE });
    this.#deadline = setTimeout(end, totalMs, passed);
    this.#endWithRun = () => {
      if (graceMs === 0) end(run.reason);
      else setTimeout(end, graceMs, run.reason).unref();
    };
    if (run.aborted) this.#endWithRun();
    else run.addEventListener("abort", this.#endWithRun, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why the request was ended; undefined if it was not. */
  get reason(): unknown {
    return this.signal.reason;
  }

  /** From now on only the end of the run ends the request. */
  liftDeadline(): void {
    clearTimeout(this.#deadline);
  }

  /** The request is over. */
  close(): void {
    this.liftDeadline();
    this.#run.removeEventListener("abort", this.#endWithRun);
  }
}
