import { describe, expect, it } from "vitest";
import { ConfigError, DataError } from "../../src/errors.ts";
import { type LogOptions, log, logLevelOf, logLine } from "../../src/protocol/log.ts";
import type { Event } from "../../src/streams/event.ts";
import { AT, asRead, checkpoint, close, END, open, records } from "../support/events.ts";

const OPTIONS: LogOptions = { name: "tap", pid: 7, now: () => AT, level: "info", readable: false };

const linesFor = (events: readonly Event[], options = OPTIONS): string[] =>
  events.map(log(options)).join("").split("\n").slice(0, -1);

describe("logLine()", () => {
  it("has the keys that the Singer SDK's schema asks for", () => {
    expect(JSON.parse(logLine({ level: "info", text: "hé" }, OPTIONS))).toEqual({
      level: "info",
      pid: 7,
      logger_name: "tap",
      ts: AT / 1000,
      thread_name: "main",
      app_name: "tap",
      stream_name: null,
      message: "hé",
      extra: {},
    });
  });

  it("stays under 64 KiB whatever the text", () => {
    const line = logLine({ level: "info", text: "é\n".repeat(100_000) }, OPTIONS);
    expect(line.length).toBeLessThan(65_536);
    expect(line).toMatch(/^[\x20-\x7e]*\n$/);
  });

  it("says nothing below its level", () => {
    expect(logLine({ level: "info", text: "x" }, { ...OPTIONS, level: "warning" })).toBe("");
    expect(logLine({ level: "error", text: "x" }, { ...OPTIONS, level: "warning" })).not.toBe("");
  });

  it("is plain for a person", () => {
    expect(asRead(logLine({ level: "warning", text: "hé" }, { ...OPTIONS, readable: true }))).toBe(
      "2026-01-02T03:04:05.678Z WARNING  hé\n",
    );
  });
});

describe("log()", () => {
  it("tells streams, logs and limits, and no record", () => {
    const said = linesFor([
      ...[open("a"), records("a", { email: "x@y" }), checkpoint("a", { b: 1 }), close("a")],
      ...[{ kind: "log", level: "warn", text: "hot" } as const, { kind: "limited", until: AT } as const, END],
    ]).map((line) => JSON.parse(line));
    expect(said.map(({ level, message }) => [level, message])).toEqual([
      ["info", 'Stream "a": started'],
      ["warning", "hot"],
      ["info", "Waiting for the rate limit until 2026-01-02T03:04:05.678Z"],
    ]);
    expect(said[0].stream_name).toBe("a");
  });

  it("ends a failed run with the first cause, at critical", () => {
    const failures = [
      close("a", false, new DataError("no a")),
      close("b", false),
      open("c"),
      close("c"),
      END,
    ];
    const said = linesFor(failures).map((line) => JSON.parse(line));
    expect(said.map(({ level }) => level)).toEqual(["error", "error", "info", "critical"]);
    expect(said.at(-1).message).toBe('Stream "a": no a');
  });

  it("says nothing twice to a person", () => {
    const said = [close("a", false, new DataError("no a")), END].map(log({ ...OPTIONS, readable: true }));
    expect(said.join("").match(/no a/g)).toHaveLength(1);
  });

  it("shows a stack for a bug only", () => {
    const lineOf = (error: unknown) => JSON.parse(linesFor([{ kind: "failed", error }])[0] ?? "").message;
    expect(lineOf(new ConfigError("Cannot do it"))).toBe("Cannot do it");
    expect(lineOf(new TypeError("oops"))).toMatch(/a bug of .*\nTypeError: oops\nTypeError\n\s+at /);
  });
});

describe("logLevelOf()", () => {
  it("takes the nearest variable that says a level", () => {
    expect(logLevelOf({})).toBe("info");
    expect(logLevelOf({ MELTANO_CLI_LOG_LEVEL: "debug" })).toBe("debug");
    expect(logLevelOf({ LOGLEVEL: "WARN", MELTANO_CLI_LOG_LEVEL: "debug" })).toBe("warning");
    expect(logLevelOf({ TAP_CONTACT_INTELLIGENCE_LOGLEVEL: "error", LOGLEVEL: "debug" })).toBe("error");
    expect(logLevelOf({ LOGLEVEL: "loud" })).toBe("info");
  });
});
