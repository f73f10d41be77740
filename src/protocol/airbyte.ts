import { TransientError } from "../errors.ts";
import type { Event, Lines, StreamState } from "../sync/event.ts";
import {
  errorMessage,
  estimateMessage,
  type Failure,
  inOrderOfHope,
  logMessage,
  rateLimited,
  stateMessage,
  streamStatus,
} from "./airbyte-message.ts";
import { asciiJson, type Language, splice } from "./language.ts";

export type AirbyteOptions = {
  /** Epoch ms by this machine's clock. */
  readonly now: () => number;
};

/** The Airbyte protocol's `read`. Errors are held until the end, because some clients stop at the first. */
export function airbyte(options: AirbyteOptions): Language {
  const run = new AirbyteRun(options.now);
  return (event) => run.say(event);
}

/** `named`: the stream's name as JSON. `unstated`: records since the stream's last STATE. `running`: its last status was RUNNING, without a reason. */
type Progress = { readonly named: string; running: boolean; ended: boolean; unstated: number };

class AirbyteRun {
  readonly #streams = new Map<string, Progress>();
  readonly #failures: Failure[] = [];
  readonly #now: () => number;
  #last = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  say(event: Event): string {
    switch (event.kind) {
      case "open":
        return this.#open(event.stream);
      case "estimate":
        return estimateMessage(event.stream, event.rows, this.#stamp());
      case "fields":
        return "";
      case "records":
        return this.#records(event.stream, event.lines);
      case "checkpoint":
        return this.#checkpoint(event.stream, event.state);
      case "close":
        return this.#close(event.stream, event.complete, event.error);
      case "limited":
        return this.#limited(event.until);
      case "log":
        return logMessage(event.level === "warn" ? "WARN" : "INFO", event.text);
      case "failed":
        this.#failures.push({ error: event.error });
        return "";
      case "end":
        return this.#end();
    }
  }

  #open(stream: string): string {
    if (this.#streams.has(stream)) throw new Error(`Cannot open stream "${stream}": it was open before`);
    this.#streams.set(stream, { named: asciiJson(stream), running: false, ended: false, unstated: 0 });
    return streamStatus(stream, "STARTED", this.#stamp());
  }

  #records(stream: string, lines: Lines): string {
    const filled = lines.every(hasFields) ? lines : lines.filter(hasFields);
    if (filled.length === 0) return "";
    const progress = this.#live(stream);
    progress.unstated += filled.length;
    const head = `{"type":"RECORD","record":{"stream":${progress.named},"emitted_at":${Math.floor(this.#now())},"data":`;
    return this.#running(stream, progress) + splice(head, "}}\n", filled);
  }

  #checkpoint(stream: string, state: StreamState): string {
    const progress = this.#live(stream);
    const { unstated } = progress;
    progress.unstated = 0;
    return this.#running(stream, progress) + stateMessage(stream, state, unstated);
  }

  #close(stream: string, complete: boolean, error: unknown): string {
    const opened = this.#streams.has(stream) ? "" : this.#open(stream);
    const progress = this.#live(stream);
    if (error !== undefined) this.#failures.push({ stream, error });
    else if (!complete) this.#failures.push({ stream, error: incomplete(stream) });
    const whole = complete && error === undefined;
    return opened + this.#terminal(stream, progress, whole);
  }

  #terminal(stream: string, progress: Progress, whole: boolean): string {
    const running = this.#running(stream, progress);
    progress.ended = true;
    return running + streamStatus(stream, whole ? "COMPLETE" : "INCOMPLETE", this.#stamp());
  }

  /** The next records say RUNNING again, which ends the platform's rate-limited display. */
  #limited(until: number): string {
    return this.#unended()
      .map(([stream, progress]) => {
        progress.running = false;
        return rateLimited(stream, until, this.#stamp());
      })
      .join("");
  }

  /** A stream that nobody closed has not been read whole. Its error is the run's, if that has one. */
  #end(): string {
    const explained = this.#failures.some((failure) => failure.stream === undefined);
    const terminals = this.#unended().map(([stream, progress]) => {
      if (!explained) this.#failures.push({ stream, error: incomplete(stream) });
      return this.#terminal(stream, progress, false);
    });
    const errors = inOrderOfHope(this.#failures).map((failure) => errorMessage(failure, this.#stamp()));
    return terminals.join("") + errors.join("");
  }

  #running(stream: string, progress: Progress): string {
    if (progress.running) return "";
    progress.running = true;
    return streamStatus(stream, "RUNNING", this.#stamp());
  }

  #unended(): readonly (readonly [string, Progress])[] {
    return [...this.#streams].filter(([, progress]) => !progress.ended);
  }

  #live(stream: string): Progress {
    const progress = this.#streams.get(stream);
    if (progress === undefined || progress.ended) {
      throw new Error(`Cannot write to stream "${stream}": it is not open`);
    }
    return progress;
  }

  /** Strictly increasing, because the platform orders failures by it. */
  #stamp(): number {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#now()));
    return this.#last;
  }
}

const incomplete = (stream: string): TransientError =>
  new TransientError(
    `Cannot complete stream "${stream}": a part of it could not be read, the log says which`,
  );

/** The platform drops a record without any field, so that counting it would look like a loss. */
const hasFields = (line: string): boolean => line.length > 16 || !/^\s*\{\s*\}\s*$/.test(line);
