import { describe, expect, it } from "vitest";
import { ConfigError, DataError } from "../../../src/base/errors.ts";
import { type LogOptions, log, logLevelOf, logLine } from "../../../src/protocol/log.ts";
import type { Event } from "../../../src/sync/event.ts";
import { AT, asRead, checkpoint, close, END, open, records } from "../../support/events.ts";

const OPTIONS: LogOptions = { name: "tap", pid: 7, now: () => AT, level: "info", readable: false };
const READABLE = { ...OPTIONS, readable: true };

const linesFor = (events: readonly Event[], options = OPTIONS): string[] =>
  events.map(log(options)).join("").split("\n").slice(0, -1);

const metric = { type: "counter", metric: "record_count", value: 3, tags: { stream: "a" } } as const;
const EVENTS: readonly Event[] = [
  open("a"),
  { kind: "estimate", stream: "a", rows: 2_003 },
  { kind: "fields", stream: "a", added: { x: {} } },
  records("a", { email: "x@y.example" }),
  checkpoint("a", {}),
  { kind: "log", level: "warn", text: "hot é" },
  { kind: "log", level: "info", text: "rows", metric },
  { kind: "retrying", what: "count a", reason: "no", attempt: 2, attempts: 5, waitMs: 1_500 },
  { kind: "limited", until: AT },
  close("a"),
  close("b", false),
  close("c", true, new DataError("no c")),
  { kind: "failed", error: new ConfigError("no run") },
  END,
];

describe("the log", () => {
  it("has the keys that the Singer SDK's schema asks for", () => {
    expect(JSON.parse(logLine({ level: "info", text: "hé" }, OPTIONS))).toEqual({
      ...{ level: "info", pid: 7, logger_name: "tap", ts: AT / 1000, thread_name: "main", app_name: "tap" },
      ...{ stream_name: null, message: "hé", extra: {} },
    });
  });

  it("for a person has no measurements, no repeated last error, and no levels of programs", () => {
    const lines = linesFor(EVENTS, READABLE).map(asRead);
    expect(lines).toHaveLength(8);
    expect(lines[2]).toBe("2026-01-02T03:04:05.678Z WARNING  hot é");
    expect(lines[4]).toContain("WARNING  Waiting for the rate limit until");
    expect(lines.join("\n").match(/no c/g)).toHaveLength(1);
  });

  it("stays under 64 KiB and in ASCII whatever the text", () => {
    const line = logLine({ level: "info", text: "é\n".repeat(100_000) }, OPTIONS);
    expect(line.length).toBeLessThan(65_536);
    expect(line).toMatch(/^[\x20-\x7e]*\n$/);
  });

  it("says nothing below the level that is wanted", () => {
    const order = ["debug", "info", "warning", "error", "critical"] as const;
    for (const [nth, level] of order.entries()) {
      const lines = order.filter((one) => logLine({ level: one, text: "x" }, { ...OPTIONS, level }) !== "");
      expect(lines).toEqual(order.slice(nth));
    }
  });

  it.each([
    ["debug", { LOGLEVEL: " trace " }],
    ["info", { LOGLEVEL: "loud" }],
    ["warning", { LOGLEVEL: "Warning", MELTANO_CLI_LOG_LEVEL: "debug" }],
    ["debug", { LOGLEVEL: "loud", MELTANO_CLI_LOG_LEVEL: "debug" }],
    ["critical", { LOGLEVEL: "disabled" }],
  ])("has the level %s for the variables %j", (level, environment) => {
    expect(logLevelOf(environment as Record<string, string>)).toBe(level);
  });
});
