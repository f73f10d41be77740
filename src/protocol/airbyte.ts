import { TransientError } from "../base/errors.ts";
import type { Event, Lines, StreamState } from "../sync/event.ts";
import {
  type Descriptor,
  errorMessage,
  estimateMessage,
  inOrderOfHope,
  logMessage,
  type StreamFailure,
  stateMessage,
  streamStatus,
} from "./airbyte-message.ts";
import { asciiJson, type Language, noticeTexts, splice, type Warned } from "./language.ts";

const AIRBYTE_LEVELS = { debug: "DEBUG", info: "INFO", warn: "WARN" } as const;

/** `now`: epoch ms by this machine's clock. `isVerbose`: with messages of the level debug. */
export type AirbyteOptions = { readonly now: () => number; readonly isVerbose?: boolean };

/** The messages of Airbyte's `read`. Errors are at the end, because some clients stop at the first error. */
export function airbyte(options: AirbyteOptions): Language {
  const run = new AirbyteRun(options);
  return (event) => run.say(event);
}

/** `unstated`: records since the last STATE. `running`: the last status was RUNNING without a reason. */
type Progress = { readonly stream: Descriptor; running: boolean; ended: boolean; unstated: number };

class AirbyteRun {
  readonly #streams = new Map<string, Progress>();
  readonly #failures: StreamFailure[] = [];
  readonly #now: () => number;
  readonly #isVerbose: boolean;
  readonly #noticeText: (event: Warned) => string;
  #last = 0;

  constructor({ now, isVerbose = false }: AirbyteOptions) {
    [this.#now, this.#isVerbose, this.#noticeText] = [now, isVerbose, noticeTexts(now)];
  }

  say(event: Event): string {
    switch (event.kind) {
      case "open":
        return this.#open(descriptorOf(event));
      case "estimate":
        return estimateMessage(descriptorOf(event), event.rows, this.#stamp());
      case "records":
        return this.#records(descriptorOf(event), event.lines);
      case "checkpoint":
        return this.#checkpoint(descriptorOf(event), event.state);
      case "close":
        return this.#close(descriptorOf(event), event.complete, event.error);
      case "cut":
      case "retrying":
        return logMessage("INFO", this.#noticeText(event));
      case "limited":
        return this.#limited(event.until);
      case "log":
        if (event.level === "debug" && !this.#isVerbose) return "";
        return logMessage(AIRBYTE_LEVELS[event.level], event.text);
      case "failed":
        this.#failures.push({ error: event.error });
        return "";
      case "end":
        return this.#end();
      case "fields":
        return "";
    }
  }

  #open(stream: Descriptor): string {
    const id = idOf(stream);
    if (this.#streams.has(id)) throw new Error(`Cannot open stream "${id}": it was open before`);
    this.#streams.set(id, { stream, running: false, ended: false, unstated: 0 });
    return streamStatus(stream, "STARTED", this.#stamp());
  }

  #records(stream: Descriptor, lines: Lines): string {
    const filled = lines.every(hasFields) ? lines : lines.filter(hasFields);
    if (filled.length === 0) return "";
    const progress = this.#live(stream);
    progress.unstated += filled.length;
    const { name, namespace } = stream;
    const place = namespace === undefined ? "" : `"namespace":${asciiJson(namespace)},`;
    const at = Math.floor(this.#now());
    const head = `{"type":"RECORD","record":{${place}"stream":${asciiJson(name)},"emitted_at":${at},"data":`;
    return this.#running(progress) + splice(head, "}}\n", filled);
  }

  #checkpoint(stream: Descriptor, state: StreamState): string {
    const progress = this.#live(stream);
    const { unstated } = progress;
    progress.unstated = 0;
    return stateMessage(stream, state, unstated, this.#running(progress));
  }

  #close(stream: Descriptor, complete: boolean, error: unknown): string {
    const opened = this.#streams.has(idOf(stream)) ? "" : this.#open(stream);
    const progress = this.#live(stream);
    const isComplete = complete && error === undefined;
    if (!isComplete) this.#failures.push({ stream, error: error ?? incomplete(stream) });
    return opened + this.#terminal(progress, isComplete);
  }

  #terminal(progress: Progress, isComplete: boolean): string {
    progress.ended = true;
    const status = isComplete ? "COMPLETE" : "INCOMPLETE";
    return this.#running(progress) + streamStatus(progress.stream, status, this.#stamp());
  }

  /** Sends the rate limit as a reason. The platform shows it until RUNNING is sent again with the next records. */
  #limited(until: number): string {
    const statuses = this.#unended.map((progress) => {
      progress.running = false;
      return streamStatus(progress.stream, "RUNNING", this.#stamp(), until);
    });
    return statuses.join("");
  }

  /** A stream without a `close` event is incomplete. An error of the run is also the reason for the incomplete stream. */
  #end(): string {
    const explained = this.#failures.some((failure) => failure.stream === undefined);
    const terminals = this.#unended.map((progress) => {
      const { stream } = progress;
      if (!explained) this.#failures.push({ stream, error: incomplete(stream) });
      return this.#terminal(progress, false);
    });
    const errors = inOrderOfHope(this.#failures).map((failure) => errorMessage(failure, this.#stamp()));
    return [...terminals, ...errors].join("");
  }

  #running(progress: Progress): string {
    if (progress.running) return "";
    progress.running = true;
    return streamStatus(progress.stream, "RUNNING", this.#stamp());
  }

  get #unended(): readonly Progress[] {
    return [...this.#streams.values()].filter(({ ended }) => !ended);
  }

  #live(stream: Descriptor): Progress {
    const progress = this.#streams.get(idOf(stream));
    if (progress === undefined || progress.ended)
      throw new Error(`Cannot write to stream "${idOf(stream)}": it is not open`);
    return progress;
  }

  /** Epoch ms that always increase, because the platform orders failures by them. */
  #stamp(): number {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#now()));
    return this.#last;
  }
}

type OfStream = { readonly stream: string; readonly namespace?: string | undefined };

const descriptorOf = ({ stream: name, namespace }: OfStream): Descriptor =>
  namespace === undefined ? { name } : { name, namespace };

/** The identity of a stream. Names of streams contain no slash. */
const idOf = ({ name, namespace }: Descriptor): string =>
  namespace === undefined ? name : `${namespace}/${name}`;

const incomplete = ({ name }: Descriptor): TransientError =>
  new TransientError(`Cannot complete stream "${name}": a part of it could not be read, the log says which`);

/** Whether a record has a field. The platform drops a record without fields, and the count would then show a loss. */
const hasFields = (line: string): boolean => line.length > 16 || !/^\s*\{\s*\}\s*$/.test(line);
