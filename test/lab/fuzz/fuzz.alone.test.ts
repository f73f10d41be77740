import { describe, expect, it } from "vitest";
import { BodyError } from "../../../src/errors.ts";
import { airbyte } from "../../../src/protocol/airbyte.ts";
import { linesOf } from "../../support/airbyte-messages.ts";
import { AT, checkpoint, close, END, open, rawLine } from "../../support/events.ts";
import { refusePrivate, refuseUnprintable } from "./canary.ts";
import { Dice } from "./dice.ts";
import { canonical, judgeLine } from "./judge.ts";
import { playOne, TARGETS } from "./main.ts";
import { judgeEnded } from "./verdict.ts";

describe("any input", () => {
  // The same cases in each run; `npm run fuzz` plays others, for as long as it is told.
  it.each(Object.entries(TARGETS))(
    "%s: ends well or by an error that says what to do",
    async (name, entry) => {
      const target = await entry.open();
      let units = 0;
      for (let seed = 1; seed <= entry.short; seed++) {
        try {
          units += await playOne(target, seed);
        } catch (error) {
          throw new Error(`Play it again: npm run fuzz -- --target ${name} --seed ${seed}`, { cause: error });
        }
      }
      await target.close();
      expect(units).toBeGreaterThan(0);
    },
  );
});

describe("Dice", () => {
  it("throws the same for the same seed", () => {
    const thrown = (seed: number): number[] => {
      const dice = new Dice(seed);
      return Array.from({ length: 20 }, () => dice.below(1_000));
    };
    expect(thrown(7)).toEqual(thrown(7));
    expect(thrown(7)).not.toEqual(thrown(8));
  });
});

describe("judgeLine()", () => {
  it.each([
    ['{"id":"1"}', { kind: "row", key: '"1"' }],
    ['{"id":1}', { kind: "row", key: "1" }],
    ['{"id":9007199254740993}', { kind: "row", key: "9007199254740993" }],
    ['{"id":9007199254740993,"in":{"id":1}}', { kind: "row", key: "9007199254740993" }],
    ['{"id":null}', { kind: "row", key: "" }],
    [" \t\r", { kind: "blank" }],
    ['{"success":false,"error":{}}', { kind: "error" }],
    ['{"success":false,"error":"text"}', { kind: "error" }],
    ['{"id":"1","success":false,"error":null}', { kind: "row", key: '"1"' }],
    ['{"id":"1","success":false,"error":"text"}', { kind: "row", key: '"1"' }],
    ["[]", { kind: "junk" }],
    ['{"id":"\xff"}', { kind: "junk" }],
    ['{"id":"1"', { kind: "junk" }],
  ])("takes %j for what it is", (line, judged) => {
    expect(judgeLine(line, "id")).toEqual(judged);
  });
});

describe("canonical()", () => {
  it("is one for two spellings of one row, and another for another", () => {
    expect(canonical('{ "a" :\r"\\u0062", "n": 1.0}')).toBe(canonical('{"a":"b","n":1.0}'));
    expect(canonical('{"a":"\\ud800"}')).toBe(canonical('{"a":"\\ufffd"}'));
    expect(canonical('{"n":1.0}')).not.toBe(canonical('{"n":1}'));
  });
});

describe("the checks", () => {
  it.each([
    "at Kanarek-5",
    "size 73164290",
    "Verboten-email-1",
    "00112233445566778899AABBCCDDEEFF",
    "this is a bug of ours",
    'TypeError\\n    at run (file.js:1:2)"',
  ])("refuse %j outside of records", (text) => {
    expect(() => refusePrivate("stderr", text)).toThrow("stderr holds");
  });

  it.each(["\u001b[2J", "a\rb", "\u2028", "\u202e"])("refuse %j for a terminal", (text) => {
    expect(() => refuseUnprintable("stderr", text)).toThrow("stderr holds");
  });

  const ROW = '{"id":"Kanarek"}';
  const said = (complete: boolean): string =>
    [
      ...[open("people"), { kind: "records", stream: "people", lines: [rawLine(ROW)], at: AT } as const],
      ...[
        checkpoint("people", {}),
        close("people", complete, complete ? undefined : new BodyError("x")),
        END,
      ],
    ]
      .map(airbyte({ now: () => AT }))
      .join("");

  it("take a run that says what it did", () => {
    const ended = { code: 0, stdout: said(true), stderr: "" };
    expect(judgeEnded("airbyte", ended).records.get("people")).toEqual([ROW]);
  });

  it.each([
    ["exits with 0 and is incomplete", 0, said(false)],
    ["exits with 1 and is complete", 1, said(true)],
    ["exits with 2", 2, ""],
    ["ends within a line", 0, said(true).trim()],
    ["says what is no message", 0, `${said(true)}{"type":"ODD"}\n`],
    ["has lines out of their order", 0, `${linesOf(said(true)).toReversed().join("\n")}\n`],
  ])("refuse a run that %s", (_, code, stdout) => {
    expect(() => judgeEnded("airbyte", { code, stdout, stderr: "" })).toThrow();
  });
});
