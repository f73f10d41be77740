import { describe, expect, it } from "vitest";
import { ConfigError, DataError } from "../../../src/base/errors.ts";
import { type LogOptions, log, logLevelOf, logLine } from "../../../src/protocol/log.ts";
import type { Event } from "../../../src/sync/event.ts";
import { AT, asRead, checkpoint, close, END, open, records } from "../../support/events.ts";

const OPTIONS: LogOptions = { name: "tap", pid: 7, now: () => AT, level: "info", format: "json" };
const TERMINAL: LogOptions = { ...OPTIONS, format: "text", isTerminal: true };

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
  { kind: "limited", until: AT + 9_000 },
  { kind: "limited", until: AT + 42_500 },
  { kind: "limited", until: AT + 43_000 },
  {
    kind: "cut",
    stream: "a",
    days: "2024-01-01",
    to: null,
    isExport: true,
    isCut: true,
    shown: 2,
    counted: 2_003,
  },
  close("a"),
  close("b", false),
  close("c", true, new DataError("no c")),
  { kind: "failed", error: new ConfigError("no run") },
  END,
];

describe("the log", () => {
  it("says each failure once: to a person as it happens, to a program at the end, with the first failure last", () => {
    const lines = linesFor(EVENTS, TERMINAL).map(asRead);
    expect(lines.slice(2)).toEqual([
      "2026-01-02T03:04:05Z WARNING hot é",
      "2026-01-02T03:04:05Z WARNING Cannot count a: no. Try 2 of 5 in 1.5 s",
      "2026-01-02T03:04:05Z WARNING Waiting 43 s for the rate limit",
      "2026-01-02T03:04:05Z WARNING a, 2024-01-01: 2 of 2,003 rows arrived; reading again",
      '2026-01-02T03:04:05Z ERROR Stream "b": incomplete, a part of it could not be read',
      '2026-01-02T03:04:05Z ERROR Stream "c": no c',
      "2026-01-02T03:04:05Z ERROR no run",
    ]);
    const last = linesFor(EVENTS)
      .map((line) => JSON.parse(line))
      .slice(-4);
    expect(last.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "info a, 2024-01-01: 2 of 2,003 rows arrived; reading again",
      "error no run",
      'error Stream "c": no c',
      'critical Stream "b": incomplete, a part of it could not be read',
    ]);
  });

  it("does not fill a terminal with cut exports, or with a wait", () => {
    const cut = EVENTS.filter(({ kind }) => kind === "cut" || kind === "limited");
    const lines = linesFor(Array.from({ length: 5_000 }, () => cut).flat(), TERMINAL);
    expect(lines).toHaveLength(6);
    expect(lines.at(-1)).toMatch(/reading again. Later ones are counted at the end$/);
  });

  it("stays under 64 KiB and in ASCII whatever the text", () => {
    const line = logLine({ level: "info", text: "é\n".repeat(100_000) }, OPTIONS);
    expect(line.length).toBeLessThan(65_536);
    expect(line).toMatch(/^[\x20-\x7e]*\n$/);
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
