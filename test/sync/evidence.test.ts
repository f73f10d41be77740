import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DataError } from "../../src/errors.ts";
import { tactic } from "../../src/sync/attempt.ts";
import type { RawLine } from "../../src/sync/event.ts";
import { judge, Pass, type PassOptions } from "../../src/sync/evidence.ts";
import { Ledger } from "../../src/sync/ledger.ts";
import type { Count, Row } from "../../src/sync/ports.ts";
import type { Day, Window } from "../../src/sync/window.ts";

const YESTERDAY = "2026-03-19" as Day;
const CLOSED: Window = { kind: "closed", from: "2026-03-01" as Day, to: "2026-03-10" as Day };
const RECENT: Window = { kind: "open", from: YESTERDAY, undated: false };
const REACHING: Window = { kind: "open", from: "2026-03-01" as Day, undated: false };
const WHOLE: Window = { kind: "open", from: "1970-01-01" as Day, undated: true };
const ASKED = Date.parse("2026-03-20T10:00:00Z");
const ANSWERED = ASKED + 3_000;

const counted = (rows: number, undated = 0): Count => ({
  rows,
  undated,
  known: true,
  asked: ASKED,
  answered: ANSWERED,
});

const row = (key: string, cursor: string | null, extra = ""): Row => ({
  raw: JSON.stringify({ id: key, discoveredAt: cursor, extra }) as RawLine,
  key,
  cursor,
});

const passOver = (
  window: Window,
  count: Count,
  rows: readonly Row[],
  { ledger = new Ledger(), ...options }: PassOptions & { ledger?: Ledger } = {},
): { pass: Pass; emitted: readonly string[] } => {
  const pass = new Pass(window, count, ledger, options);
  return { pass, emitted: pass.admit(rows) };
};

const IN_MARCH = "2026-03-05T12:00:00.000Z";
const AFTER_ASKED = "2026-03-20T10:00:01.000Z";
const AFTER_ANSWERED = "2026-03-20T10:00:04.000Z";

describe("Pass", () => {
  it("counts keys, not rows, so that a repeated row stands in for none", () => {
    const rows = [row("a", IN_MARCH), row("a", IN_MARCH), row("a", IN_MARCH, "other"), row("b", IN_MARCH)];
    const { pass, emitted } = passOver(CLOSED, counted(3), rows);
    expect(pass).toMatchObject({ older: 2, upTo: 2, distinct: 2, undated: 0 });
    expect(emitted).toHaveLength(2);
    expect(judge(CLOSED, YESTERDAY, counted(3), pass)).toBe("again");
  });

  it("counts no newcomer as one that was counted", () => {
    const rows = [row("a", "2026-03-19T08:00:00.000Z"), row("b", AFTER_ASKED), row("c", AFTER_ANSWERED)];
    const { pass } = passOver(RECENT, counted(2), rows);
    expect(pass).toMatchObject({ older: 1, upTo: 2, distinct: 3 });
  });

  it("emits a key again only when it was checked again", () => {
    const ledger = new Ledger();
    passOver(REACHING, counted(1), [row("a", IN_MARCH)], { ledger });
    const { emitted } = passOver(REACHING, counted(1), [row("a", IN_MARCH), row("a", AFTER_ASKED)], {
      ledger,
    });
    expect(emitted).toEqual([row("a", AFTER_ASKED).raw]);
  });

  it("tells rows without a date apart by their content, however it is spelt", () => {
    const spelt: Row = {
      raw: '{ "id": "u", "discoveredAt": null, "extra": "" }' as RawLine,
      key: "u",
      cursor: null,
    };
    const { pass, emitted } = passOver(WHOLE, counted(0, 1), [
      row("u", null),
      spelt,
      row("u", null, "changed"),
    ]);
    expect(pass.undated).toBe(1);
    expect(emitted).toEqual([row("u", null).raw, row("u", null, "changed").raw]);
  });

  it("takes a cursor that is no moment for none", () => {
    const { pass, emitted } = passOver(WHOLE, counted(0, 1), [row("x", "soon")]);
    expect(pass).toMatchObject({ undated: 1, newest: undefined });
    expect(emitted).toHaveLength(1);
  });

  it("keeps back rows past its end but counts them", () => {
    const until = Date.parse("2026-03-19T23:59:59.999Z");
    const { pass, emitted } = passOver(
      RECENT,
      counted(2),
      [row("a", AFTER_ASKED), row("b", "2026-03-19T01:00:00Z")],
      {
        until,
      },
    );
    expect(emitted).toEqual([row("b", "2026-03-19T01:00:00Z").raw]);
    expect(pass).toMatchObject({ upTo: 2, newest: "2026-03-19T01:00:00Z" });
  });

  it("knows the newest cursor even if an earlier pass emitted it", () => {
    const ledger = new Ledger();
    passOver(RECENT, counted(1), [row("a", AFTER_ASKED)], { ledger });
    const { pass } = passOver(RECENT, counted(1), [row("a", AFTER_ASKED)], { ledger });
    expect(pass.newest).toBe(AFTER_ASKED);
  });

  it("refuses rows of other days, save those checked again since the count", () => {
    expect(() => passOver(CLOSED, counted(1), [row("a", "2026-03-11T00:00:00.000Z")])).toThrow(DataError);
    expect(() => passOver(CLOSED, counted(1), [row("a", "2026-02-28T23:59:59.999Z")])).toThrow(DataError);
    expect(() => passOver(RECENT, counted(1), [row("a", IN_MARCH)])).toThrow(DataError);
    expect(() => passOver(CLOSED, counted(1), [row("a", AFTER_ASKED)])).not.toThrow();
    expect(() => passOver(WHOLE, counted(1), [row("a", "1969-01-01T00:00:00Z")])).not.toThrow();
  });

  it("says what it shares with earlier passes and what they lacked", () => {
    const ledger = new Ledger();
    const first = passOver(
      RECENT,
      counted(2),
      [row("a", "2026-03-19T01:00:00Z"), row("b", "2026-03-19T02:00:00Z")],
      {
        ledger,
      },
    ).pass;
    const rows = [
      row("a", "2026-03-19T01:00:00Z"),
      row("c", "2026-03-19T03:00:00Z"),
      row("d", AFTER_ANSWERED),
    ];
    const { pass } = passOver(RECENT, counted(2), rows, { ledger, since: first.number });
    expect(pass).toMatchObject({ distinct: 3, shared: 1, unseen: 1 });
  });

  it("takes nothing for seen in a pass that came before `since`", () => {
    const ledger = new Ledger();
    passOver(RECENT, counted(1), [row("a", "2026-03-19T01:00:00Z")], { ledger });
    const since = passOver(RECENT, counted(1), [], { ledger }).pass.number;
    const { pass } = passOver(RECENT, counted(1), [row("a", "2026-03-19T01:00:00Z")], { ledger, since });
    expect(pass).toMatchObject({ shared: 0, unseen: 1 });
  });

  it("counts each key once whatever comes in whatever order", () => {
    const ROW = fc.record({
      key: fc.constantFrom("a", "b", "c", "d"),
      cursor: fc.constantFrom(IN_MARCH, "2026-03-06T01:00:00.000Z", AFTER_ASKED, AFTER_ANSWERED),
    });
    fc.assert(
      fc.property(fc.array(ROW, { maxLength: 30 }), (given) => {
        const { pass } = passOver(
          REACHING,
          counted(0),
          given.map(({ key, cursor }) => row(key, cursor)),
        );
        const keys = (most: number): number =>
          new Set(given.filter(({ cursor }) => Date.parse(cursor) < most).map(({ key }) => key)).size;
        expect(pass.older).toBe(keys(ASKED));
        expect(pass.upTo).toBe(keys(ANSWERED + 1));
        expect(pass.distinct).toBe(keys(Number.POSITIVE_INFINITY));
      }),
    );
  });
});

describe("judge()", () => {
  const shown = (older: number, upTo = older, undated = 0): Pass => {
    const pass = new Pass(WHOLE, counted(0), new Ledger());
    return Object.assign(pass, { older, upTo, undated, distinct: upTo + undated });
  };

  it.each<[string, Window, Count, Pass, string]>([
    ["a closed window that shows what was counted", CLOSED, counted(5), shown(5), "proven"],
    ["a closed window that lacks a row", CLOSED, counted(5), shown(4), "again"],
    ["a closed window in which newcomers would stand in", CLOSED, counted(5), shown(4, 5), "again"],
    ["a closed window that shows more", CLOSED, counted(5), shown(6), "halve"],
    ["an open window that reaches back and lacks a row", REACHING, counted(5), shown(4), "split"],
    ["an open window that reaches back and shows more", REACHING, counted(5), shown(6), "split"],
    ["an open window that reaches back and is exact", REACHING, counted(5), shown(5), "proven"],
    ["yesterday and today with newcomers", RECENT, counted(5), shown(4, 7), "proven"],
    ["yesterday and today with too few", RECENT, counted(5), shown(4, 4), "again"],
    ["yesterday and today with those too few who were counted", RECENT, counted(5), shown(4, 4, 2), "again"],
    ["everything without its undated", WHOLE, counted(5, 2), shown(5, 5, 1), "again"],
    ["everything", WHOLE, counted(5, 2), shown(5, 5, 2), "proven"],
    ["the undated", { kind: "undated" }, counted(5, 2), shown(0, 0, 2), "proven"],
    ["too few undated", { kind: "undated" }, counted(5, 2), shown(0, 0, 1), "again"],
    ["a plain stream", { kind: "all" }, counted(5), shown(3, 3, 2), "proven"],
    ["a plain stream that is short", { kind: "all" }, counted(6), shown(3, 3, 2), "again"],
  ])("%s", (_, window, count, pass, verdict) => {
    expect(judge(window, YESTERDAY, count, pass)).toBe(verdict);
  });
});

describe("tactic()", () => {
  it("tries a window twice and then halves it", () => {
    expect([0, 1, 2].map((failures) => tactic(true, failures))).toEqual(["stream", "stream", "halves"]);
  });

  it("tries what cannot be halved five times, walks its pages, and gives up", () => {
    const ladder = Array.from({ length: 8 }, (_, failures) => tactic(false, failures));
    expect(ladder).toEqual([...Array(5).fill("stream"), "pages", "give up", "give up"]);
  });
});
