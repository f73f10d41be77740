import {
  type AirbyteMessage,
  expectAirbyteMessage,
  expectAirbyteMessages,
  linesOf,
  streamOf,
} from "../../support/airbyte-messages.ts";
import { asRead } from "../../support/events.ts";
import type { Ended } from "../../support/run.ts";

/** Stands in the values of all rows, texts and numbers, so that a value is known wherever it turns up. Never in a name. */
export const CANARY = "Kanarek";
export const CANARY_NUMBER = "7316429";
/** Stands in the values of fields that a run was told to drop, hash or withhold: these may not even be in records. */
export const FORBIDDEN = "Verboten";

const SECRET = "00112233445566778899aabbccddeeff";
export const KEY = `svc_0a1b2c3d_${SECRET}`;

/** What a text that is no record may not hold. */
const PRIVATE = new Map([
  ["a value of a row", new RegExp(`${CANARY}|${CANARY_NUMBER}|${FORBIDDEN}`, "i")],
  ["the key", new RegExp(SECRET, "i")],
  ['the word "bug"', /\bbug\b/i],
  ["a stack frame", /(?:^|\n|\\n)\s+at .*:\d+:\d+/],
]);
/** What moves the cursor of a terminal, breaks a line or turns the direction of a text. */
const UNPRINTABLE = /[^\P{Cc}\n\t]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
const LONGEST_MESSAGE = 20_000;

function refuse(where: string, what: string, pattern: RegExp, text: string): void {
  const { index } = pattern.exec(text) ?? {};
  if (index === undefined) return;
  throw new Error(
    `${where} holds ${what}: ${JSON.stringify(text.slice(Math.max(0, index - 300), index + 300))}`,
  );
}

/** Throws if a text that is no record says what only a record may say, or what nobody should read. */
export function refusePrivate(where: string, text: string): void {
  // A state names the sources that the key can read.
  const said = text.replace(/\\?"sources\\?":\[[^\]]*\]/g, "");
  for (const [what, pattern] of PRIVATE) refuse(where, what, pattern, said);
}

/** Throws if a text for a person would do more to a terminal than stand there. */
const refuseUnprintable = (where: string, text: string): void =>
  refuse(where, "what no terminal may get", UNPRINTABLE, text);

/** Throws if a message is no text for a person, or so long that no log takes it. */
function refuseMessage(text: string): void {
  refuseUnprintable("A message", text);
  if (text.length > LONGEST_MESSAGE) throw new Error(`A message has ${text.length} characters`);
}

type Said = Pick<Ended, "code" | "stdout" | "stderr">;

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

/**
 * Throws unless a command ended as one may: an exit code that agrees with what was said, statuses in their order, lines
 * that are messages, and nothing outside of records that only a record may hold.
 * @param alwaysZero the command exits with 0 whatever it says, as a `check` does for platforms
 */
export function judgeEnded(language: Language, { code, stdout, stderr }: Said, alwaysZero = false): Verdict {
  // Platforms know 0 and 1; 2 tells others that only a person can correct it.
  const isForPerson = code === 2 && (language === "jsonl" || language === "text");
  if (code !== 0 && code !== 1 && !isForPerson) throw new Error(`The exit code is ${code}`);
  const lines = linesOf(stdout);
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
    refuseUnprintable("The text", asRead(where));
  }
  judgeLog(stderr);
  const run = JUDGES[language](lines, said, code);
  if (code !== (run.succeeded || alwaysZero ? 0 : isForPerson ? 2 : 1)) {
    throw new Error(
      `The exit code is ${code}, and the output says ${run.succeeded ? "success" : "failure"}: ${text.slice(-2_000)}${stderr.slice(-2_000)}`,
    );
  }
  if (code > 0 && language !== "check" && stderr === "" && !text.includes('"ERROR"'))
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
    refuseMessage(message);
  }
}

/** Throws if a message says to a person what it should not. */
function judgeTexts({ log, trace, connectionStatus }: AirbyteMessage): void {
  if (trace?.error?.stack_trace !== undefined) throw new Error(`A stack trace: ${trace.error.stack_trace}`);
  const { message = "", internal_message = "" } = trace?.error ?? {};
  for (const text of [log?.message ?? "", message, internal_message, connectionStatus?.message ?? ""])
    refuseMessage(text);
}

function judgeAirbyte(lines: readonly string[]): Run {
  const messages = expectAirbyteMessages(lines.map(asRead));
  const last = new Map<string, string>();
  for (const message of messages) {
    judgeTexts(message);
    const status = message.trace?.stream_status?.status;
    if (status !== undefined) last.set(streamOf(message) ?? "", status);
    if (!["RECORD", "STATE", "TRACE", "LOG"].includes(message.type))
      throw new Error(`A ${message.type} in a read`);
  }
  const complete = [...last].filter(([, status]) => status === "COMPLETE").map(([name]) => name);
  const isFailed = messages.some(({ trace }) => trace?.type === "ERROR");
  return { complete: new Set(complete), succeeded: !isFailed && complete.length === last.size };
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
    const { type = "", stream } = JSON.parse(line) as { readonly type?: string; readonly stream?: string };
    if (!["SCHEMA", "STATE", "ACTIVATE_VERSION"].includes(type))
      throw new Error(`No message: ${line.slice(0, 300)}`);
    if (type === "SCHEMA") known.add(String(stream));
    last = type;
  }
  if (lines.length > 0 && last !== "STATE") throw new Error(`The last message is a ${last}`);
  return { complete: NONE, succeeded: code === 0 };
}

/** What a command says that reads no rows, and the types of its messages but logs. */
function toldIn(said: readonly string[]): { messages: AirbyteMessage[]; types: string[] } {
  const messages = said.map(expectAirbyteMessage);
  messages.forEach(judgeTexts);
  const types = messages.map(({ type, trace }) => trace?.type ?? type).filter((type) => type !== "LOG");
  return { messages, types };
}

function judgeCheck(said: readonly string[]): Run {
  const { messages, types } = toldIn(said);
  const status = messages.at(-1)?.connectionStatus?.status;
  if (types.length !== 1 || status === undefined) throw new Error("Not one CONNECTION_STATUS at the end");
  return { complete: NONE, succeeded: status === "SUCCEEDED" };
}

function judgeDiscover(said: readonly string[]): Run {
  const { types } = toldIn(said);
  if (types.length !== 1 && !types.every((type) => type === "ERROR"))
    throw new Error(`Discover says ${types.join(", ")}`);
  return { complete: NONE, succeeded: types[0] === "CATALOG" };
}
