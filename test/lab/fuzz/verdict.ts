import {
  type AirbyteMessage,
  expectAirbyteMessage,
  expectAirbyteMessages,
  linesOf,
  must,
  streamOf,
} from "../../support/airbyte-messages.ts";
import type { Ended } from "../../support/run.ts";

/** Stands in the values of all rows, texts and numbers, so that a value is known wherever it turns up. Never in a name or a time. */
export const CANARY = "Kanarek";
export const CANARY_NUMBER = "9316429085";
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
  const index = text.search(pattern);
  must(
    index < 0,
    `${where} holds no ${what}`,
    JSON.stringify(text.slice(Math.max(0, index - 300), index + 300)),
  );
}

/** Throws if a text that is no record says what only a record may say, or what nobody should read. */
export function refusePrivate(where: string, text: string): void {
  // A state names the sources that the key can read, before its filters.
  const said = text.replace(/\\?"sources\\?":\[.*?\](?=,\\?"filters)/g, "");
  for (const [what, pattern] of PRIVATE) refuse(where, what, pattern, said);
}

/** Throws if a message is no text for a person, or so long that no log takes it. */
function refuseMessage(text: string): void {
  refuse("a message", "control character", UNPRINTABLE, text);
  must(text.length <= LONGEST_MESSAGE, "a message is short", text);
}

/** What a command says on stdout: messages of a language, or text for a person. */
export type Language = "airbyte" | "singer" | "jsonl" | "check" | "discover" | "text";

/** A record, and its JSON as it was written. `stream`: "" in a language that names none. */
type SaidRecord = { readonly type: string; readonly stream: string; readonly raw: string };

/** How an ended command has been found, beside that nothing is wrong with it. */
export type Verdict = {
  readonly records: readonly SaidRecord[];
  /** The streams that ended well, as Airbyte is told. */
  readonly complete: readonly string[];
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
export function judgeEnded(
  language: Language,
  { code, stdout, stderr }: Omit<Ended, "signal">,
  alwaysZero = false,
): Verdict {
  const lines = linesOf(stdout);
  const records: SaidRecord[] = [];
  const other: string[] = [];
  for (const line of lines) {
    const record = language === "jsonl" ? { type: "RECORD", stream: "", raw: line } : recordIn(line);
    if (record === undefined) other.push(line);
    else records.push(record);
  }
  const text = other.join("\n");
  const said = `${text}\n${stderr}`;
  refusePrivate("what is said", said);
  refuse("the text", "control character", UNPRINTABLE, language === "text" ? said : stderr);
  judgeLog(stderr);
  const { complete = [], isFailed = code !== 0 } = JUDGES[language](lines, other);
  // Platforms know 0 and 1; 2 tells others that only a person can correct it.
  const isForPerson = code === 2 && (language === "jsonl" || language === "text");
  must(
    code === (alwaysZero || !isFailed ? 0 : isForPerson ? 2 : 1),
    `the exit code is not ${code} where the output says ${isFailed ? "failure" : "success"}`,
    said.slice(-1_000),
  );
  must(code === 0 || language === "check" || /[^\n]/.test(stderr) || text.includes('"ERROR"'), "it says why");
  return { records, complete, succeeded: !isFailed, said };
}

/** What the output itself says of the run; nothing where the exit code alone tells. */
type Reported = { readonly complete?: readonly string[]; readonly isFailed?: boolean };

const JUDGES: Readonly<Record<Language, (lines: readonly string[], other: readonly string[]) => Reported>> = {
  airbyte: judgeAirbyte,
  singer: judgeSinger,
  jsonl: (lines) => {
    must(!lines.includes(""), "no line is blank");
    return {};
  },
  check: (_, other) => judgeAnswer(other, "CONNECTION_STATUS"),
  discover: (_, other) => judgeAnswer(other, "CATALOG"),
  text: () => ({}),
};

const AIRBYTE_RECORD =
  /^\{"type":"RECORD","record":\{(?:"namespace":"(?:[^"\\]|\\.)*",)?"stream":"([a-z_]+)","emitted_at":\d+,"data":/;
const SINGER_RECORD =
  /^\{"type":"RECORD","stream":"([a-z_]+)",(?:"version":\d+,)?"time_extracted":"[0-9TZ:.-]+","record":/;

/** A record's line, and the JSON in it; undefined for another line. */
function recordIn(line: string): SaidRecord | undefined {
  if (!line.startsWith('{"type":"RECORD"')) return undefined;
  const airbyte = AIRBYTE_RECORD.exec(line);
  const { 0: start = "", 1: stream = "" } = airbyte ?? SINGER_RECORD.exec(line) ?? [];
  must(stream !== "", "a RECORD has a known form", line);
  return { type: "RECORD", stream, raw: line.slice(start.length, airbyte === null ? -1 : -2) };
}

/** Every line that the log writes is one JSON object with a message that a terminal may get. */
function judgeLog(stderr: string): void {
  for (const line of stderr.split("\n").filter((one) => one.startsWith("{"))) {
    const { level, message } = JSON.parse(line) as { level?: unknown; message?: unknown };
    must(typeof level === "string" && typeof message === "string", "a line of the log has a message", line);
    refuseMessage(message);
  }
}

/** Throws if a message says to a person what it should not. */
function judgeTexts({ log, trace, connectionStatus }: AirbyteMessage): void {
  must(trace?.error?.stack_trace === undefined, "no stack trace is told", trace?.error?.stack_trace);
  const { message, internal_message } = trace?.error ?? {};
  for (const text of [log?.message, message, internal_message, connectionStatus?.message])
    refuseMessage(text ?? "");
}

function judgeAirbyte(lines: readonly string[]): Reported {
  const messages = expectAirbyteMessages(lines);
  const last = new Map<string, string>();
  for (const message of messages) {
    judgeTexts(message);
    const status = message.trace?.stream_status?.status;
    if (status !== undefined) last.set(streamOf(message) ?? "", status);
    must(
      ["RECORD", "STATE", "TRACE", "LOG"].includes(message.type),
      "it is a message of a read",
      message.type,
    );
  }
  const complete = [...last].filter(([, status]) => status === "COMPLETE").map(([name]) => name);
  const isFailed = messages.some(({ trace }) => trace?.type === "ERROR");
  return { complete, isFailed: isFailed || complete.length < last.size };
}

function judgeSinger(lines: readonly string[]): Reported {
  const known = new Set<string>();
  let last = "STATE";
  for (const line of lines) {
    const { type, stream } = recordIn(line) ?? (JSON.parse(line) as { type: string; stream?: string });
    last = type;
    must(["SCHEMA", "STATE", "ACTIVATE_VERSION", "RECORD"].includes(type), "it is Singer's message", line);
    must(type === "RECORD" || /^[\x20-\x7e]*$/.test(line), "all but records is ASCII", line);
    if (type === "SCHEMA") known.add(stream ?? "");
    must(type !== "RECORD" || known.has(stream ?? ""), "a SCHEMA stands before its records", line);
  }
  must(last === "STATE", "a STATE is the last message", last);
  return {};
}

/** Of a command that gives one answer; or errors instead of a catalog. */
function judgeAnswer(other: readonly string[], expected: string): Reported {
  const messages = other.map(expectAirbyteMessage);
  messages.forEach(judgeTexts);
  const types = messages.map(({ type, trace }) => trace?.type ?? type).filter((type) => type !== "LOG");
  const isAnswer = types.length === 1 && types[0] === expected;
  const isRefusal = expected === "CATALOG" && types.every((type) => type === "ERROR");
  must(isAnswer || isRefusal, `it says one ${expected}`, types.join());
  return {
    isFailed: isRefusal || messages.some(({ connectionStatus }) => connectionStatus?.status === "FAILED"),
  };
}
