import { describe, expect, it } from "vitest";
import { ConfigError, DataError } from "../../../src/errors.ts";
import { type LogOptions, log, logLevelOf, logLine } from "../../../src/protocol/log.ts";
import type { Event } from "../../../src/streams/event.ts";
import { AT, asRead, checkpoint, close, END, open, records } from "../../support/events.ts";

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
    expect(lineOf("oops")).toMatch(/a bug of .*\nstring$/);
  });
});

describe("log() of each event", () => {
  const metric = { type: "counter", metric: "record_count", value: 3, tags: { stream: "a" } } as const;
  const events: readonly Event[] = [
    open("a"),
    { kind: "estimate", stream: "a", rows: 2_003 },
    { kind: "fields", stream: "a", added: { x: {} } },
    records("a", { x: 1 }),
    checkpoint("a", {}),
    { kind: "log", level: "warn", text: "hot é" },
    { kind: "log", level: "info", text: "cold" },
    { kind: "log", level: "info", text: "rows", metric },
    { kind: "retrying", what: "count a", reason: "no", attempt: 2, attempts: 5, waitMs: 1_500 },
    { kind: "limited", until: AT },
    close("a"),
    close("b", false),
    close("c", true, new DataError("no c")),
    { kind: "failed", error: new ConfigError("no run") },
    END,
  ];
  const SAID = [
    ["info", "a", 'Stream "a": started'],
    ["info", "a", 'Stream "a": about 2,003 rows'],
    ["warning", null, "hot é"],
    ["info", null, "cold"],
    ["info", "a", "rows"],
    ["info", null, "Cannot count a: no. Try 2 of 5 in 1.5 s"],
    ["info", null, "Waiting for the rate limit until 2026-01-02T03:04:05.678Z"],
    ["error", "b", 'Stream "b": incomplete, a part of it could not be read'],
    ["error", "c", 'Stream "c": no c'],
    ["error", null, "no run"],
    ["critical", "b", 'Stream "b": incomplete, a part of it could not be read'],
  ] as const;

  it("is a line for programs, each with its level and its stream", () => {
    const said = linesFor(events).map((line) => JSON.parse(line));
    expect(said.map((one) => [one.level, one.stream_name, one.message])).toEqual(SAID);
    expect(said.map((one) => one.metric_info).filter(Boolean)).toEqual([metric]);
    expect(new Set(said.map((one) => `${one.logger_name} ${one.app_name} ${one.pid} ${one.ts}`))).toEqual(
      new Set([`tap tap 7 ${AT / 1_000}`]),
    );
  });

  it("is a line for a person, without measurements and without the last word again", () => {
    const said = linesFor(events, { ...OPTIONS, readable: true }).map(asRead);
    const levels = {
      debug: "DEBUG   ",
      info: "INFO    ",
      warning: "WARNING ",
      error: "ERROR   ",
      critical: "",
    };
    expect(said).toEqual(
      SAID.filter(([level, , text]) => level !== "critical" && text !== "rows").map(
        ([level, , text]) => `2026-01-02T03:04:05.678Z ${levels[level]} ${text}`,
      ),
    );
  });

  it("has the level that waits are to have", () => {
    const said = linesFor(events, { ...OPTIONS, waits: "debug", level: "debug" }).map((line) =>
      JSON.parse(line),
    );
    expect(said.filter(({ level }) => level === "debug").map(({ message }) => message)).toEqual([
      SAID[5][2],
      SAID[6][2],
    ]);
    expect(linesFor(events, { ...OPTIONS, waits: "debug" })).toHaveLength(SAID.length - 2);
  });

  it("is not said below the level that is wanted", () => {
    const order = ["debug", "info", "warning", "error", "critical"] as const;
    for (const [nth, level] of order.entries()) {
      const said = order.filter((one) => logLine({ level: one, text: "x" }, { ...OPTIONS, level }) !== "");
      expect(said).toEqual(order.slice(nth));
    }
  });
});

describe("logLevelOf()", () => {
  it.each([
    ["debug", ["debug", "DEBUG", " trace "]],
    ["info", ["info", "", "  ", "loud", "toString"]],
    ["warning", ["warn", "Warning"]],
    ["error", ["error"]],
    ["critical", ["critical", "fatal", "disabled"]],
  ])("is %s for %j", (level, names) => {
    for (const name of names) expect(logLevelOf({ LOGLEVEL: name }), name).toBe(level);
  });

  it("is what is wanted otherwise where no variable says one", () => {
    expect(logLevelOf({ LOGLEVEL: "loud" }, "error")).toBe("error");
    expect(logLevelOf({ LOGLEVEL: "loud", MELTANO_CLI_LOG_LEVEL: "debug" }, "error")).toBe("debug");
  });

  it("takes the nearest variable that says a level", () => {
    expect(logLevelOf({})).toBe("info");
    expect(logLevelOf({ MELTANO_CLI_LOG_LEVEL: "debug" })).toBe("debug");
    expect(logLevelOf({ LOGLEVEL: "WARN", MELTANO_CLI_LOG_LEVEL: "debug" })).toBe("warning");
    expect(logLevelOf({ TAP_CONTACT_INTELLIGENCE_LOGLEVEL: "error", LOGLEVEL: "debug" })).toBe("error");
    expect(logLevelOf({ LOGLEVEL: "loud" })).toBe("info");
  });
});
