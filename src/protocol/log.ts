import { ConnectorError } from "../base/errors.ts";
import { plural, toLatin1 } from "../base/text.ts";
import type { Event } from "../sync/event.ts";
import { causeChain, fitText, framesOf, userMessage } from "./error-text.ts";
import { jsonLine, type Language, waitingText } from "./language.ts";

const LEVELS = ["debug", "info", "warning", "error", "critical"] as const;

export type LogLevel = (typeof LEVELS)[number];

export type LogOptions = {
  readonly name: string;
  readonly pid: number;
  readonly now: () => number;
  /** The lowest level that is written. */
  readonly level: LogLevel;
  /** True: lines for a person at a terminal. False: lines for Meltano. */
  readonly readable: boolean;
};

export type LogEntry = {
  readonly level: LogLevel;
  readonly text: string;
  readonly stream?: string;
  readonly metric?: object;
};

/**
 * The log of a run on stderr, next to Singer messages or JSON lines. The last line of a run that failed says why, for
 * platforms that show only that one.
 */
export function log(options: LogOptions): Language {
  let failure: LogEntry | undefined;
  return (event) => {
    // A person sees what is waited for.
    const entry = entryOf(event, options.readable ? "warning" : "info");
    if (entry?.level === "error") failure ??= { ...entry, level: "critical" };
    const last = event.kind === "end" && !options.readable ? failure : undefined;
    return [entry, last].map((said) => (said === undefined ? "" : logLine(said, options))).join("");
  };
}

/** One line, or "" if its level is too low. */
export function logLine(entry: LogEntry, options: LogOptions): string {
  if (LEVELS.indexOf(entry.level) < LEVELS.indexOf(options.level)) return "";
  const cut = { ...entry, text: fitText(entry.text) };
  return options.readable ? readableLine(cut, options) : meltanoLine(cut, options);
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

function entryOf(event: Event, waits: LogLevel): LogEntry | undefined {
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
      return { level: level === "warn" ? "warning" : "info", text };
    }
    case "retrying":
    case "limited":
      return { level: waits, text: waitingText(event) };
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
function readableLine({ level, text, metric }: LogEntry, { now }: LogOptions): string {
  if (metric !== undefined) return "";
  return toLatin1(`${new Date(now()).toISOString()} ${level.toUpperCase().padEnd(8)} ${text}\n`);
}
