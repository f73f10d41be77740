import { Ajv } from "ajv";
import { readPackageFile } from "../../src/package-file.ts";
import { refuseLong, refusePrivate, refuseUnprintable } from "./canary.ts";
import type { Ended } from "./play.ts";

/** What a command says on stdout: messages of a language, or text for a person. */
export type Language = "airbyte" | "singer" | "jsonl" | "check" | "discover" | "text";

/** How an ended command has been found, beside that nothing is wrong with it. */
export type Verdict = {
  /** The raw JSON of each record, by stream. */
  readonly records: ReadonlyMap<string, readonly string[]>;
  /** The streams that ended well. */
  readonly complete: ReadonlySet<string>;
  /** Whether everything succeeded. */
  readonly succeeded: boolean;
  /** All that is said and is no record. */
  readonly said: string;
};

type Message = { readonly type?: string; readonly [name: string]: unknown };
type Trace = {
  readonly type: string;
  readonly emitted_at: number;
  readonly error?: {
    readonly message: string;
    readonly internal_message?: string;
    readonly stack_trace?: string;
  };
  readonly stream_status?: { readonly stream_descriptor: Descriptor; readonly status: string };
};
type Descriptor = { readonly name: string; readonly namespace?: string };

const protocol = readPackageFile("test/support/airbyte_protocol.json") as object;
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(protocol, "protocol");
const isMessage = ajv.compile({ $ref: "protocol#/definitions/AirbyteMessage" });

/**
 * Throws unless a command ended as one may: an exit code that agrees with what was said, statuses in their order, lines
 * that are messages, and nothing outside of records that only a record may hold.
 * @param alwaysZero the command exits with 0 whatever it says, as a `check` does for platforms
 */
export function judgeEnded(language: Language, { code, stdout, stderr }: Ended, alwaysZero = false): Verdict {
  if (code !== 0 && code !== 1) throw new Error(`The exit code is ${code}`);
  if (stdout !== "" && !stdout.endsWith("\n"))
    throw new Error(`The output ends within a line: ${stdout.slice(-200)}`);
  const lines = stdout.split("\n").slice(0, -1);
  const records = new Map<string, string[]>();
  const said: string[] = [];
  const isBare = language === "jsonl";
  for (const line of lines) {
    const record = isBare ? { stream: "", raw: line } : recordIn(line);
    if (record === undefined) said.push(line);
    else if (records.get(record.stream)?.push(record.raw) === undefined)
      records.set(record.stream, [record.raw]);
  }
  const text = said.join("\n");
  refusePrivate("stdout", text);
  refusePrivate("stderr", stderr);
  if (!/^[\x20-\x7e\n]*$/.test(text) && language !== "text")
    throw new Error(`stdout is not ASCII: ${text.slice(0, 500)}`);
  for (const where of [stderr, ...(language === "text" ? [text] : [])]) {
    refuseUnprintable("The text", Buffer.from(where, "latin1").toString("utf8"));
  }
  judgeLog(stderr);
  const run = JUDGES[language](lines, said, code);
  if (code !== (run.succeeded || alwaysZero ? 0 : 1)) {
    throw new Error(
      `The exit code is ${code}, and the output says ${run.succeeded ? "success" : "failure"}: ${text.slice(-2_000)}${stderr.slice(-2_000)}`,
    );
  }
  if (code === 1 && language !== "check" && stderr === "" && !text.includes('"ERROR"'))
    throw new Error("Nothing says why");
  return { records, complete: run.complete, succeeded: run.succeeded, said: `${text}\n${stderr}` };
}

type Run = { readonly complete: ReadonlySet<string>; readonly succeeded: boolean };

const NONE: ReadonlySet<string> = new Set();

const JUDGES: Readonly<
  Record<Language, (lines: readonly string[], said: readonly string[], code: number) => Run>
> = {
  airbyte: (lines) => judgeAirbyte(lines),
  singer: (lines, _, code) => judgeSinger(lines, code),
  jsonl: (lines, _, code) => {
    if (lines.some((line) => line === "")) throw new Error("A blank line");
    return { complete: NONE, succeeded: code === 0 };
  },
  check: (_, said) => judgeCheck(said),
  discover: (_, said) => judgeDiscover(said),
  text: (_, __, code) => ({ complete: NONE, succeeded: code === 0 }),
};

const AIRBYTE_RECORD =
  /^\{"type":"RECORD","record":\{(?:"namespace":"(?:[^"\\]|\\.)*",)?"stream":"([a-z_]+)","emitted_at":\d+,"data":/;
const SINGER_RECORD =
  /^\{"type":"RECORD","stream":"([a-z_]+)",(?:"version":\d+,)?"time_extracted":"[0-9TZ:.-]+","record":/;

/** The stream and the JSON of a record's line; undefined for another line. */
function recordIn(line: string): { readonly stream: string; readonly raw: string } | undefined {
  if (!line.startsWith('{"type":"RECORD"')) return undefined;
  const airbyte = AIRBYTE_RECORD.exec(line);
  if (airbyte !== null) return { stream: airbyte[1] ?? "", raw: line.slice(airbyte[0].length, -2) };
  const singer = SINGER_RECORD.exec(line);
  if (singer === null) throw new Error(`A RECORD of no form: ${line.slice(0, 300)}`);
  return { stream: singer[1] ?? "", raw: line.slice(singer[0].length, -1) };
}

/** Every line that the log writes is one JSON object with a message that a terminal may get. */
function judgeLog(stderr: string): void {
  for (const line of stderr.split("\n")) {
    if (!line.startsWith("{")) continue;
    const { level, message } = JSON.parse(line) as { level?: unknown; message?: unknown };
    if (typeof level !== "string" || typeof message !== "string")
      throw new Error(`No line of a log: ${line}`);
    refuseUnprintable("A log message", message);
    refuseLong("A log message", message);
  }
}

function toMessage(line: string): Message {
  const message = JSON.parse(line) as Message;
  if (!isMessage(message))
    throw new Error(`No message: ${ajv.errorsText(isMessage.errors)}: ${line.slice(0, 500)}`);
  const { type, log, trace } = message as unknown as {
    type: string;
    log?: { message: string };
    trace?: Trace;
  };
  if (type === "LOG") refuseUnprintable("A LOG", log?.message ?? "");
  if (type === "LOG") refuseLong("A LOG", log?.message ?? "");
  if (trace?.error !== undefined) {
    if (trace.error.stack_trace !== undefined) throw new Error(`A stack trace: ${line}`);
    for (const text of [trace.error.message, trace.error.internal_message ?? ""]) {
      refuseUnprintable("An ERROR", text);
      refuseLong("An ERROR", text);
    }
  }
  return message;
}

type Progress = { status: string; unstated: number; states: number };

const idOf = ({ name, namespace }: Descriptor): string =>
  namespace === undefined ? name : `${namespace}/${name}`;

function judgeAirbyte(lines: readonly string[]): Run {
  const streams = new Map<string, Progress>();
  let [stamp, errors, isEnding] = [0, 0, false];
  for (const line of lines) {
    if (isEnding && !line.includes('"type":"ERROR"'))
      throw new Error(`A line after an ERROR: ${line.slice(0, 300)}`);
    if (line.startsWith('{"type":"RECORD"')) {
      const running = [...streams.values()].find(({ status }) => status === "RUNNING");
      if (running === undefined) throw new Error("A RECORD of a stream that is not RUNNING");
      running.unstated += 1;
      continue;
    }
    const { type, state, trace } = toMessage(line) as unknown as {
      type: string;
      state?: { stream: { stream_descriptor: Descriptor }; sourceStats: { recordCount: number } };
      trace?: Trace;
    };
    if (state !== undefined) {
      const progress = streams.get(idOf(state.stream.stream_descriptor));
      if (progress?.status !== "RUNNING") throw new Error(`A STATE of a stream that is not RUNNING: ${line}`);
      if (state.sourceStats.recordCount !== progress.unstated) {
        throw new Error(`A STATE counts ${state.sourceStats.recordCount} records of ${progress.unstated}`);
      }
      progress.unstated = 0;
      progress.states += 1;
    } else if (trace !== undefined) {
      if (trace.emitted_at <= stamp) throw new Error(`A TRACE at ${trace.emitted_at} after one at ${stamp}`);
      stamp = trace.emitted_at;
      if (trace.type === "ERROR") [errors, isEnding] = [errors + 1, true];
      if (trace.stream_status !== undefined) follow(streams, trace.stream_status);
    } else if (type !== "LOG") throw new Error(`A ${type} in a read`);
  }
  const open = [...streams].filter(([, { status }]) => status !== "COMPLETE" && status !== "INCOMPLETE");
  if (open.length > 0) throw new Error(`Without an end: ${open.map(([name]) => name).join(", ")}`);
  const complete = [...streams].filter(([, { status }]) => status === "COMPLETE").map(([name]) => name);
  return { complete: new Set(complete), succeeded: errors === 0 && complete.length === streams.size };
}

function follow(
  streams: Map<string, Progress>,
  { stream_descriptor, status }: NonNullable<Trace["stream_status"]>,
): void {
  const id = idOf(stream_descriptor);
  const progress = streams.get(id);
  const before = progress?.status ?? "";
  const order: Readonly<Record<string, readonly string[]>> = {
    STARTED: [""],
    RUNNING: ["STARTED", "RUNNING"],
    COMPLETE: ["RUNNING"],
    INCOMPLETE: ["RUNNING"],
  };
  if (order[status]?.includes(before) !== true)
    throw new Error(`${id} is ${status} after ${before || "nothing"}`);
  if (status === "COMPLETE" && (progress?.unstated !== 0 || progress.states === 0)) {
    throw new Error(`${id} is COMPLETE, and its last records have no STATE`);
  }
  if (progress === undefined) streams.set(id, { status, unstated: 0, states: 0 });
  else progress.status = status;
}

function judgeSinger(lines: readonly string[], code: number): Run {
  const known = new Set<string>();
  let last = "";
  for (const line of lines) {
    if (line.startsWith('{"type":"RECORD"')) {
      const { stream = "" } = recordIn(line) ?? {};
      if (!known.has(stream)) throw new Error(`A RECORD of "${stream}" before its SCHEMA`);
      last = "RECORD";
      continue;
    }
    const { type = "", stream } = JSON.parse(line) as Message;
    if (!["SCHEMA", "STATE", "ACTIVATE_VERSION"].includes(type))
      throw new Error(`No message: ${line.slice(0, 300)}`);
    if (type === "SCHEMA") known.add(String(stream));
    last = type;
  }
  if (lines.length > 0 && last !== "STATE") throw new Error(`The last message is a ${last}`);
  return { complete: NONE, succeeded: code === 0 };
}

function judgeCheck(said: readonly string[]): Run {
  const messages = said.map(toMessage);
  const last = messages.at(-1) as unknown as { connectionStatus?: { status: string; message?: string } };
  const others = messages.slice(0, -1).filter(({ type }) => type !== "LOG");
  if (last?.connectionStatus === undefined || others.length > 0)
    throw new Error("Not one CONNECTION_STATUS at the end");
  const { status, message = "" } = last.connectionStatus;
  refuseUnprintable("A status", message);
  refuseLong("A status", message);
  return { complete: NONE, succeeded: status === "SUCCEEDED" };
}

function judgeDiscover(said: readonly string[]): Run {
  const types = said
    .map(toMessage)
    .map((message) => (message["trace"] as Trace | undefined)?.type ?? message.type);
  const others = types.filter((type) => type !== "LOG");
  if (others.length !== 1 && !others.every((type) => type === "ERROR"))
    throw new Error(`Discover says ${others.join(", ")}`);
  return { complete: NONE, succeeded: others[0] === "CATALOG" };
}
