import { styleText } from "node:util";
import { ConnectorError } from "../base/errors.ts";
import { plural, toLatin1 } from "../base/text.ts";
import type { Event } from "../sync/event.ts";
import { causeChain, fitText, framesOf, userMessage } from "./error-text.ts";
import { cutText, jsonLine, type Language, longWaits, waitingText } from "./language.ts";

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
  /** Whether a person watches. A terminal shows what the run waits for at its usual level, which is warning. */
  readonly isTerminal?: boolean;
  readonly hasColour?: boolean;
};

export type LogEntry = {
  readonly level: LogLevel;
  text: string;
  readonly stream?: string;
  readonly metric?: object;
};

/** A terminal shows this many cut exports, one a line. Its progress, and the end of the run, count them all. */
const MAX_CUTS = 5;
const CUTS_ARE_COUNTED = ". Later ones are counted at the end";

/**
 * The log of a run on stderr, next to Singer messages or rows. In JSON each failure is a line at the end, the first failure last:
 * some platforms show the last line alone.
 */
export function log(options: LogOptions): Language {
  const { format, isTerminal = false, now } = options;
  const isWorthALine = longWaits(now);
  const failures: LogEntry[] = [];
  let cuts = 0;
  const entriesOf = (event: Event): readonly LogEntry[] => {
    if (event.kind === "limited" && !isWorthALine(event.until)) return [];
    if (event.kind === "cut" && isTerminal && ++cuts > MAX_CUTS) return [];
    if (event.kind === "end") return failures.splice(0).reverse();
    const entry = entryOf(event, isTerminal ? "warning" : "info", now());
    if (entry === undefined) return [];
    if (cuts === MAX_CUTS && event.kind === "cut") entry.text += CUTS_ARE_COUNTED;
    if (format === "text" || entry.level !== "error") return [entry];
    failures.push(failures.length === 0 ? { ...entry, level: "critical" } : entry);
    return [];
  };
  return (event) =>
    entriesOf(event)
      .map((entry) => logLine(entry, options))
      .join("");
}

/** One line, or "" if its level is too low. */
export function logLine(entry: LogEntry, options: LogOptions): string {
  if (LEVELS.indexOf(entry.level) < LEVELS.indexOf(options.level)) return "";
  const cut = { ...entry, text: fitText(entry.text) };
  return options.format === "text" ? readableLine(cut, options) : meltanoLine(cut, options);
}

/** The tap's own variable wins over the shell's, and that over what Meltano was started with. */
export function logLevelOf(
  env: Readonly<Record<string, string | undefined>>,
  otherwise: LogLevel = "info",
): LogLevel {
  const names = ["TAP_CONTACT_INTELLIGENCE_LOGLEVEL", "LOGLEVEL", "MELTANO_CLI_LOG_LEVEL"];
  const levels = names.map((name) => ALIASES.get((env[name] ?? "").trim().toLowerCase()));
  return levels.find((level) => level !== undefined) ?? otherwise;
}

const ALIASES: ReadonlyMap<string, LogLevel> = new Map([
  ...LEVELS.map((level) => [level, level] as const),
  ["warn", "warning"],
  ["fatal", "critical"],
  ["trace", "debug"],
  ["disabled", "critical"],
]);

/** @param notable the level of what a person at a terminal is shown */
function entryOf(event: Event, notable: LogLevel, now: number): LogEntry | undefined {
  switch (event.kind) {
    case "open":
      return streamEntry("info", event.stream, "started");
    case "estimate":
      return streamEntry("info", event.stream, `about ${plural(event.rows, "row")}`);
    case "close":
      if (event.error !== undefined) return streamEntry("error", event.stream, errorText(event.error));
      // The run logs a complete stream with its counts.
      if (event.complete) return undefined;
      return streamEntry("error", event.stream, "incomplete, a part of it could not be read");
    case "failed":
      return { level: "error", text: errorText(event.error) };
    case "log": {
      const { level, text, metric } = event;
      if (metric !== undefined) return { level: "info", text, stream: metric.tags.stream, metric };
      return { level: level === "warn" ? "warning" : level, text };
    }
    case "cut":
      return { level: notable, text: cutText(event) };
    case "retrying":
    case "limited":
      return { level: notable, text: waitingText(event, now) };
    case "fields":
    case "records":
    case "checkpoint":
    case "end":
      return undefined;
  }
}

const streamEntry = (level: LogLevel, stream: string, text: string): LogEntry => ({
  level,
  text: `Stream "${stream}": ${text}`,
  stream,
});

/** No stack for an expected error: its message says all that a user needs. */
function errorText(error: unknown): string {
  if (error instanceof ConnectorError) return userMessage(error);
  return [userMessage(error), causeChain(error), framesOf(error)].filter(Boolean).join("\n");
}

/** All keys that the Singer SDK's schema of logs asks for. Meltano shows a line that lacks one as it is, at info. */
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

/** UTF-8 as one byte a character, as in every language. Measurements are for programs. */
function readableLine({ level, text, metric }: LogEntry, { now, hasColour }: LogOptions): string {
  if (metric !== undefined) return "";
  const isRed = hasColour === true && level === "error";
  const word = isRed ? styleText("red", "ERROR", { validateStream: false }) : level.toUpperCase();
  return toLatin1(`${new Date(now()).toISOString().slice(0, 19)}Z ${word} ${text}\n`);
}
