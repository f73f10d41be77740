import { styleText } from "node:util";
import { ConnectorError } from "../base/errors.ts";
import { plural, toLatin1 } from "../base/text.ts";
import type { Environment } from "../config/environment.ts";
import type { Event } from "../sync/event.ts";
import { causeChain, fitText, framesOf, userMessage } from "./error-text.ts";
import { jsonLine, type Language, noticeTexts, type Warned } from "./language.ts";

const LEVELS = ["debug", "info", "warning", "error", "critical"] as const;

export type LogLevel = (typeof LEVELS)[number];

/** Lines for a person, or lines for Meltano. */
export type LogFormat = "text" | "json";

export type LogOptions = {
  readonly name: string;
  readonly pid: number;
  readonly now: () => number;
  /** The lowest level that is written. */
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Whether stderr is a terminal. A terminal shows notices at the level warning, because warning is its usual level. */
  readonly isTerminal?: boolean;
  readonly hasColour?: boolean;
};

export type LogEntry = {
  readonly level: LogLevel;
  readonly text: string;
  readonly stream?: string;
  readonly metric?: object;
};

/** A terminal shows this number of cut exports. The end of the run counts all cut exports. */
const MAX_CUTS = 5;

/**
 * The log of a run on stderr. In JSON each failure is a line at the end. The first failure is the last line, because some
 * platforms show only the last line.
 */
export function log(options: LogOptions): Language {
  const { format, isTerminal = false, now } = options;
  const noticeText = noticeTexts(now);
  const failures: LogEntry[] = [];
  let cuts = 0;
  const noticeEntries = (event: Warned): readonly LogEntry[] => {
    const isCut = event.kind === "cut" && isTerminal;
    if (isCut) cuts += 1;
    const text = isCut && cuts > MAX_CUTS ? "" : noticeText(event);
    const more = isCut && cuts === MAX_CUTS ? ". Later ones are counted at the end" : "";
    return text === "" ? [] : [{ level: isTerminal ? "warning" : "info", text: `${text}${more}` }];
  };
  const entriesOf = (event: Event): readonly LogEntry[] => {
    if (event.kind === "cut" || event.kind === "limited" || event.kind === "retrying")
      return noticeEntries(event);
    if (event.kind === "end") return failures.splice(0).reverse();
    const entry = entryOf(event);
    if (entry === undefined) return [];
    if (format === "text" || entry.level !== "error") return [entry];
    failures.push(failures.length === 0 ? { ...entry, level: "critical" } : entry);
    return [];
  };
  const lineOf = (entry: LogEntry): string => logLine(entry, options);
  return (event) => entriesOf(event).map(lineOf).join("");
}

/** One line, or "" if its level is too low. */
export function logLine(entry: LogEntry, options: LogOptions): string {
  if (LEVELS.indexOf(entry.level) < LEVELS.indexOf(options.level)) return "";
  const cut = { ...entry, text: fitText(entry.text) };
  return options.format === "text" ? readableLine(cut, options) : meltanoLine(cut, options);
}

/** The level from the environment. The first of three variables with a known level decides. */
export function logLevelOf(env: Environment, otherwise: LogLevel = "info"): LogLevel {
  const names = ["TAP_CONTACT_INTELLIGENCE_LOGLEVEL", "LOGLEVEL", "MELTANO_CLI_LOG_LEVEL"];
  const levels = names.map((name) => ALIASES.get((env[name] ?? "").trim().toLowerCase()));
  return levels.find((level) => level !== undefined) ?? otherwise;
}

/** Whether a run logs at the level debug. @param level of the command line; undefined: the level of the environment */
export const isDebug = (level: LogLevel | undefined, env: Environment): boolean =>
  (level ?? logLevelOf(env)) === "debug";

const ALIASES: ReadonlyMap<string, LogLevel> = new Map([
  ...LEVELS.map((level) => [level, level] as const),
  ["warn", "warning"],
  ["fatal", "critical"],
  ["trace", "debug"],
  ["disabled", "critical"],
]);

function entryOf(event: Event): LogEntry | undefined {
  switch (event.kind) {
    case "open":
      return streamEntry("info", event.stream, "started");
    case "estimate":
      return streamEntry("info", event.stream, `about ${plural(event.rows, "row")}`);
    case "close":
      if (event.error !== undefined) return streamEntry("error", event.stream, errorText(event.error));
      // The class Output logs the end of a complete stream, with its counts.
      if (event.complete) return undefined;
      return streamEntry("error", event.stream, "incomplete, a part of it could not be read");
    case "failed":
      return { level: "error", text: errorText(event.error) };
    case "log": {
      const { level, text, metric } = event;
      if (metric !== undefined) return { level: "info", text, stream: metric.tags.stream, metric };
      return { level: level === "warn" ? "warning" : level, text };
    }
    default:
      return undefined;
  }
}

const streamEntry = (level: LogLevel, stream: string, text: string): LogEntry => ({
  level,
  text: `Stream "${stream}": ${text}`,
  stream,
});

/** The message of an expected error, which needs no stack. An unexpected error adds its causes and stack. */
function errorText(error: unknown): string {
  if (error instanceof ConnectorError) return userMessage(error);
  return [userMessage(error), causeChain(error), framesOf(error)].filter(Boolean).join("\n");
}

/** All keys in the Singer SDK's schema of logs. Without one key, Meltano shows the raw line at the level info. */
function meltanoLine({ level, text, stream, metric }: LogEntry, { name, pid, now }: LogOptions): string {
  return jsonLine({
    level,
    pid,
    logger_name: name,
    ts: now() / 1000,
    thread_name: "main",
    app_name: name,
    stream_name: stream ?? null,
    message: text,
    metric_info: metric,
    extra: {},
  });
}

/** A line of UTF-8, one byte a character; "" for metrics, which programs read. */
function readableLine({ level, text, metric }: LogEntry, { now, hasColour }: LogOptions): string {
  if (metric !== undefined) return "";
  const isRed = hasColour === true && level === "error";
  const word = isRed ? styleText("red", "ERROR", { validateStream: false }) : level.toUpperCase();
  return toLatin1(`${new Date(now()).toISOString().slice(0, 19)}Z ${word} ${text}\n`);
}
