import { describe, expect, it } from "vitest";
import { isTold, noiseOf, type Outcome, outcomeOf, repeatedIn, Warehouse } from "../../../storm/judge.ts";
import { type Output, readOutput } from "../../../storm/output.ts";

const AT = "2026-02-01T10:00:00.000Z";
const LATER = "2026-02-02T10:00:00.000Z";
const row = (id: string, discoveredAt: string | null = AT) => ({ id, discoveredAt });
const output = (...rows: readonly ReturnType<typeof row>[]): Output => ({
  rows,
  junk: 0,
  complaints: [],
  state: undefined,
});
const text = (...lines: readonly unknown[]): string =>
  lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");

describe("readOutput()", () => {
  it("reads Airbyte's messages: rows, junk, levels, the last state, and no torn line", () => {
    const stream = { type: "STREAM", stream: { stream_state: { day: 2 } } };
    const stdout = text(
      { type: "RECORD", record: { stream: "people", data: row("a") } },
      { type: "RECORD", record: { stream: "people", data: { success: false } } },
      { type: "STATE", state: { type: "STREAM", stream: { stream_state: { day: 1 } } } },
      { type: "STATE", state: stream },
      { type: "LOG", log: { level: "INFO", message: "error-free" } },
      { type: "LOG", log: { level: "WARN", message: "a warning" } },
      { type: "TRACE", trace: { type: "ERROR", error: { message: "an error" } } },
      "no JSON",
      '{"type":"RECORD","record":{"stream":"people","data":{"id":"torn"',
    );
    expect(readOutput({ speaks: "airbyte" }, { stdout, stderr: "" })).toEqual({
      rows: [row("a")],
      junk: 1,
      complaints: ["a warning", "an error"],
      state: [stream],
    });
  });

  it("takes the state of the old kind as it stands in a file", () => {
    const stdout = text({ type: "STATE", state: { data: { people: { cutoff: AT } } } }, "");
    expect(readOutput({ speaks: "airbyte" }, { stdout, stderr: "" }).state).toEqual({
      people: { cutoff: AT },
    });
  });

  it("reads Singer's messages, and the lines of stderr that complain", () => {
    const stdout = text({ type: "RECORD", record: row("a") }, { type: "STATE", value: { b: 1 } }, "");
    const stderr = "x | INFO | error-free\nx | ERROR | lost it\n";
    const read = readOutput({ speaks: "singer", complaint: "\\| ERROR" }, { stdout, stderr });
    expect(read).toEqual({
      rows: [row("a")],
      junk: 0,
      complaints: ["x | ERROR | lost it"],
      state: { b: 1 },
    });
  });

  it("reads files, whatever they call the date and however they spell it", () => {
    const files = text({ id: "a", at: "2026-02-01T10:00:00+00:00" }, { id: "b", at: null }, "");
    const read = readOutput({ speaks: "files", cursor: "at" }, { stdout: "", stderr: "", files });
    expect(read).toMatchObject({ rows: [row("a"), row("b", null)], state: undefined });
  });
});

describe("the judge", () => {
  it.each<[Outcome, number, number, boolean, number]>([
    ["complete", 0, 0, false, 0],
    ["complete", 0, 0, true, 0],
    ["complete, a false alarm", 0, 0, true, 1],
    ["told, then complete", 5, 0, true, 1],
    ["late", 5, 0, false, 0],
    ["told, lost", 5, 2, true, 0],
    ["LOST", 5, 2, false, 0],
  ])("calls it %s: lost %d, for good %d, told %s, exit %d", (outcome, lost, lostForGood, told, exit) => {
    const rest = { twice: 0, met: true, notes: [], requests: 1, seconds: 1 };
    expect(outcomeOf({ lost, lostForGood, told, exit, ...rest })).toBe(outcome);
  });

  it("misses rows that never came, and older versions of rows that did", () => {
    const warehouse = new Warehouse();
    warehouse.take(output(row("a"), row("b"), row("gone")));
    const served = [row("a"), row("b", LATER), row("c")];
    expect(warehouse.lacks(served)).toBe(2);
    expect(warehouse.strangers(served)).toBe(1);
    warehouse.take(output(row("b", LATER), row("c")));
    expect(warehouse.lacks(served)).toBe(0);
  });

  it("counts as repeated what came again unchanged", () => {
    expect(repeatedIn(output(row("a"), row("a"), row("a", LATER), row("b")))).toBe(1);
  });

  it("hears an exit code, and a complaint that a calm run does not make", () => {
    const says = (complaint: string): Output => ({ ...output(), complaints: [complaint] });
    const noise = noiseOf(says("2026-02-01 10:00:07 WARNING 3 fields are unknown"));
    expect(isTold(0, says("2026-02-03 11:59:59 WARNING 4 fields are unknown"), noise)).toBe(false);
    expect(isTold(0, says("WARNING half of the rows are missing"), noise)).toBe(true);
    expect(isTold(1, output(), noise)).toBe(true);
    expect(isTold("stopped", output(), noise)).toBe(true);
    expect(isTold(0, output(), noise)).toBe(false);
  });
});
