import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BodyError, DataError } from "../../../src/errors.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import { NewestKeys } from "../../../src/streams/newest-keys.ts";
import { judge, Pass, provenBy } from "../../../src/streams/proof.ts";
import { nextAttempt } from "../../../src/streams/read-window.ts";
import { SeenRows } from "../../../src/streams/seen-rows.ts";
import type { Count, Row } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import type { RunRules } from "../../../src/streams/window-result.ts";
import { WindowSize } from "../../../src/streams/window-size.ts";
import type { Day } from "../../../src/time.ts";
import { rulesWith } from "../../support/run-rules.ts";

const YESTERDAY = "2026-03-19" as Day;
const CLOSED: Window = { kind: "closed", from: "2026-03-01" as Day, to: "2026-03-10" as Day };
const RECENT: Window = { kind: "open", from: YESTERDAY, undated: false };
const REACHING: Window = { kind: "open", from: "2026-03-01" as Day, undated: false };
const WHOLE: Window = { kind: "open", from: "0001-01-01" as Day, undated: true };
const ASKED = Date.parse("2026-03-20T10:00:00Z");
const ANSWERED = ASKED + 3_000;

const counted = (rows: number, undated = 0): Count => ({
  ...{ rows, undated, known: true },
  ...{ asked: ASKED, answered: ANSWERED },
});

const row = (key: string, cursor: string | null, extra = ""): Row => ({
  raw: JSON.stringify({ id: key, discoveredAt: cursor, extra }) as RawLine,
  key: key === "" ? "" : JSON.stringify(key),
  cursor,
});

function passOver(
  window: Window,
  rows: readonly Row[],
  {
    count = counted(0),
    seen = new SeenRows(),
    ...rules
  }: Partial<RunRules & { count: Count; seen: SeenRows }> = {},
): { pass: Pass; emitted: readonly string[] } {
  const pass = new Pass(window, count, seen, rulesWith(rules));
  return { pass, emitted: pass.accept({ rows }).lines };
}

const IN_MARCH = "2026-03-05T12:00:00.000Z";
const AFTER_ASKED = "2026-03-20T10:00:01.000Z";
const AFTER_ANSWERED = "2026-03-20T10:00:04.000Z";

describe("Pass", () => {
  it("emits a key again only when it was checked again", () => {
    const seen = new SeenRows();
    passOver(REACHING, [row("a", IN_MARCH)], { seen });
    const { emitted } = passOver(REACHING, [row("a", IN_MARCH), row("a", AFTER_ASKED)], { seen });
    expect(emitted).toEqual([row("a", AFTER_ASKED).raw]);
  });

  it("says of each line that it emits what is known of it", () => {
    const [usual, odd] = [{ ...row("a", IN_MARCH), names: ["id"] }, row("b", IN_MARCH)];
    const pass = new Pass(REACHING, counted(0), new SeenRows(), rulesWith({}));
    const { lines, names } = pass.accept({ rows: [odd, odd, usual, usual] });
    expect({ lines, names }).toEqual({ lines: [odd.raw, usual.raw], names: [undefined, ["id"]] });
  });

  it("takes no row for a witness that has no key, or a date in the future", () => {
    const newestKeys = new NewestKeys();
    const rows = [row("a", IN_MARCH), row("b", AFTER_ANSWERED), row("", IN_MARCH)];
    passOver(REACHING, rows, { newestKeys, latest: ANSWERED, onMissingKey: "pass" });
    expect(newestKeys.witness("k")).toMatchObject({ keys: [expect.any(String)], cursor: IN_MARCH });
  });

  it("emits a key again that was checked again within the same millisecond", () => {
    const seen = new SeenRows();
    const [first, second] = ["2026-03-19T08:00:00.000001Z", "2026-03-19T08:00:00.000002Z"];
    passOver(RECENT, [row("a", first), row("a", first)], { seen });
    expect(passOver(RECENT, [row("a", second)], { seen }).emitted).toHaveLength(1);
    expect(passOver(RECENT, [row("a", "2026-03-19T09:00:00.000002+01:00")], { seen }).emitted).toEqual([]);
  });

  it("takes a date for the same in every unit of an epoch number, unless the number is finer", () => {
    const ms = Date.parse("2026-03-19T08:00:00.123Z");
    const seen = new SeenRows();
    passOver(RECENT, [row("a", "2026-03-19T08:00:00.123Z")], { seen });
    const same = [String(ms / 1_000), String(ms), `${ms}000`, `${ms}000000`].map((date) => row("a", date));
    expect(passOver(RECENT, same, { seen }).emitted).toEqual([]);
    expect(passOver(RECENT, [row("a", `${ms}001`)], { seen }).emitted).toHaveLength(1);
  });

  const MS = Date.parse("2026-03-19T08:00:00.120Z");
  it.each<[cursor: string, other: string, isSame: boolean]>([
    ...["2026-03-19T08:00:00.120Z", String(MS), `${MS / 1_000}`, `${MS}000`, `${MS}000000`].map(
      (cursor): [string, string, boolean] => [cursor, "2026-03-19T09:00:00.12+01:00", true],
    ),
    ["2026-03-19T08:00:00.120Z", "2026-03-19T08:00:00.121Z", false],
    ["2026-03-19T08:00:00.12000Z", "2026-03-19T08:00:00.120Z", true],
    ["2026-03-19T08:00:00.12001Z", "2026-03-19T08:00:00.120Z", false],
    ["2026-03-19T08:00:00.12001Z", "2026-03-19T08:00:00.1200100+00:00", true],
    ["2026-03-19T08:00:00,12001Z", "2026-03-19T08:00:00.12001Z", true],
    ["2026-03-19T08:00:00.12001Z", "2026-03-19T08:00:00.12002Z", false],
    ["2026-03-19T08:00:00.1201", "2026-03-19T08:00:00.1202", false],
    ["2026-03-19 08:00:00.1201", "2026-03-19 08:00:00.120Z", false],
    [`${MS}001`, `${MS}002`, false],
    [`${MS}001`, String(MS), false],
    [`${MS}000001`, `${MS}000002`, false],
    [`${MS / 1_000}`, `${MS / 1_000}01`, false],
  ])("takes the cursors %s and %s of a key for the same moment: %s", (cursor, other, isSame) => {
    const { emitted } = passOver(RECENT, [row("a", cursor), row("a", other)]);
    expect(emitted).toHaveLength(isSame ? 1 : 2);
  });

  it("tells rows without a date apart by their content, however it is spelt", () => {
    const spelt: Row = {
      raw: '{ "id": "u", "discoveredAt": null, "extra": "" }' as RawLine,
      key: '"u"',
      cursor: null,
    };
    const { pass, emitted } = passOver(WHOLE, [row("u", null), spelt, row("u", null, "changed")]);
    expect(pass.undated).toBe(1);
    expect(emitted).toEqual([row("u", null).raw, row("u", null, "changed").raw]);
  });

  it("takes a row for the same whether its text is escaped or UTF-8", () => {
    const escaped = '{"id":"u","name":"\\u00e9\\ud83d\\ude00"}' as RawLine;
    const plain = '{"id":"u","name":"\xc3\xa9\xf0\x9f\x98\x80"}' as RawLine;
    const rows = [escaped, plain].map((raw): Row => ({ raw, key: '"u"', cursor: null }));
    expect(passOver(WHOLE, rows).emitted).toEqual([escaped]);
  });

  it("takes a cursor that no rule can read for a date and for none, as the service may", () => {
    const { pass, emitted } = passOver(WHOLE, [row("x", "soon")]);
    expect(pass).toMatchObject({ undated: 1, dated: 1, newest: undefined });
    expect(emitted).toHaveLength(1);
    expect(passOver(CLOSED, [row("x", "soon")]).pass.beforeCount).toBe(1);
  });

  it("tells of a cursor that no rule can read once for each row, however many passes show it", () => {
    const seen = new SeenRows();
    const rows = [row("x", "soon"), row("y", "later"), row("a", IN_MARCH), row("b", null)];
    const declaredSchema = Array.from({ length: 3 }, () =>
      new Pass(WHOLE, counted(0), seen, rulesWith()).accept({ rows }),
    ).map(({ facts }) => facts?.unreadable);
    expect(declaredSchema).toEqual([2, undefined, undefined]);
  });

  it("keeps back rows past its end but counts them", () => {
    const until = Date.parse("2026-03-19T23:59:59.999Z");
    const rows = [row("a", AFTER_ASKED), row("b", "2026-03-19T01:00:00Z")];
    const { pass, emitted } = passOver(RECENT, rows, { until });
    expect(emitted).toEqual([row("b", "2026-03-19T01:00:00Z").raw]);
    expect(pass).toMatchObject({ dated: 2, newest: "2026-03-19T01:00:00Z" });
  });

  it("knows the newest cursor even if an earlier pass emitted it", () => {
    const seen = new SeenRows();
    passOver(RECENT, [row("a", AFTER_ASKED)], { seen });
    expect(passOver(RECENT, [row("a", AFTER_ASKED)], { seen }).pass.newest).toBe(AFTER_ASKED);
  });

  it("leaves a person who moved during the export to the open window, once", () => {
    const seen = new SeenRows();
    const moved = [row("a", AFTER_ASKED), row("b", "2026-03-19T00:00:00Z")];
    const closed = passOver(CLOSED, moved, { seen });
    expect(closed.emitted).toEqual([]);
    expect(closed.pass).toMatchObject({ beforeCount: 0, newest: undefined });
    expect(passOver(RECENT, moved, { seen }).emitted).toHaveLength(2);
  });

  it("refuses rows of other days, save those checked again since", () => {
    expect(() => passOver(CLOSED, [row("a", "2026-03-11T00:00:00.000Z")])).toThrow(DataError);
    expect(() => passOver(CLOSED, [row("a", "2026-02-28T23:59:59.999Z")])).toThrow(DataError);
    expect(() => passOver(RECENT, [row("a", IN_MARCH)])).toThrow(DataError);
    expect(() => passOver(CLOSED, [row("a", AFTER_ASKED)])).not.toThrow();
    expect(() => passOver(WHOLE, [row("a", "0001-01-01T00:00:00Z")])).not.toThrow();
  });

  it("says what earlier passes of its group lacked", () => {
    const seen = new SeenRows();
    const [early, late] = ["2026-03-19T01:00:00Z", "2026-03-19T03:00:00Z"];
    passOver(RECENT, [row("0", early)], { seen });
    seen.beginGroup();
    expect(passOver(RECENT, [row("0", early), row("a", early)], { seen }).pass.added).toBe(2);
    const rows = [row("a", early), row("c", late), row("d", AFTER_ANSWERED), row("u", null)];
    expect(passOver(RECENT, rows, { seen }).pass.added).toBe(2);
  });

  it.each([
    ["pass", ['{"x":1}'], 1],
    ["drop", [], 1],
  ] as const)("counts a row without a key as shown where it says %s", (onMissingKey, lines, distinct) => {
    const raw = '{"x":1}' as RawLine;
    const rows = [
      { raw, key: "", cursor: null },
      { raw, key: "", cursor: null },
    ];
    const { pass, emitted } = passOver({ kind: "all" }, rows, { onMissingKey });
    expect(emitted).toEqual(lines);
    expect(pass.distinct).toBe(distinct);
    expect(() => pass.refuseMissingKeys()).not.toThrow();
  });

  it("gives the other rows of people, and is not clean, where one has no key", () => {
    const { pass, emitted } = passOver(CLOSED, [row("", IN_MARCH), row("a", IN_MARCH)]);
    expect(emitted).toHaveLength(1);
    expect(() => pass.refuseMissingKeys()).toThrow(BodyError);
  });

  it("counts keys, not rows, and takes no newcomer for one that was counted", () => {
    // No slow clock makes rows that are dated more than a day ahead: they were there.
    const there = [IN_MARCH, "2026-03-06T01:00:00.000Z", "2026-03-21T10:00:04Z", "2999-01-01T00:00:00Z"];
    const cursors = [...there, AFTER_ASKED, AFTER_ANSWERED, "2026-03-21T10:00:03Z", null];
    const ROW = fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.constantFrom(...cursors));
    fc.assert(
      fc.property(fc.array(ROW, { maxLength: 30 }), (given) => {
        const { pass, emitted } = passOver(
          WHOLE,
          given.map(([key, cursor]) => row(key, cursor)),
        );
        const keys = (counts: (cursor: string | null) => boolean): number =>
          new Set(given.flatMap(([key, cursor]) => (counts(cursor) ? [key] : []))).size;
        expect(pass).toMatchObject({
          beforeCount: keys((cursor) => cursor !== null && there.includes(cursor)),
          ...{ dated: keys((cursor) => cursor !== null), undated: keys((cursor) => cursor === null) },
          distinct: keys(() => true),
        });
        expect(emitted).toHaveLength(new Set(given.map(String)).size);
      }),
    );
  });
});

describe("Pass, to the millisecond", () => {
  const DAY_MS = 86_400_000;
  const at = (ms: number): string => new Date(ms).toISOString();
  const start = (day: string): number => Date.parse(`${day}T00:00:00Z`);

  it.each([
    [REACHING, ASKED - 1, 1],
    [REACHING, ASKED, 0],
    [REACHING, ANSWERED + DAY_MS, 0],
    [REACHING, ANSWERED + DAY_MS + 1, 1],
    [WHOLE, ASKED, 0],
    [WHOLE, ANSWERED + DAY_MS + 1, 1],
    [CLOSED, start("2026-03-10") + DAY_MS - 1, 1],
  ])("counts a row of %j at %i for one that the count before could see: %i", (window, ms, beforeCount) => {
    const { pass } = passOver(window, [row("a", at(ms))]);
    expect([pass.beforeCount, pass.distinct, pass.dated, pass.undated]).toEqual([beforeCount, 1, 1, 0]);
  });

  it("knows no row of a closed window as one of tomorrow, whose clock the count had", () => {
    const count = { ...counted(0), asked: start("2026-03-02"), answered: start("2026-03-02") + 1_000 };
    const { pass } = passOver(CLOSED, [row("a", at(start("2026-03-05")))], { count });
    expect(pass.beforeCount).toBe(0);
  });

  it.each([
    [null, [0, 0, 1, 1]],
    ["1970-01-01T23:59:59.999Z", [0, 0, 1, 1]],
    ["1970-01-02T00:00:00Z", [1, 1, 0, 1]],
    ["soon", [0, 1, 1, 1]],
  ] as const)("takes %j for a date, for none, or for both", (cursor, [before, dated, undated, distinct]) => {
    const { pass } = passOver(WHOLE, [row("a", cursor)]);
    expect([pass.beforeCount, pass.dated, pass.undated, pass.distinct]).toEqual([
      before,
      dated,
      undated,
      distinct,
    ]);
  });

  it.each([
    [start("2026-03-01") - 1, "refused"],
    [start("2026-03-01"), "shown"],
    [start("2026-03-11") - 1, "shown"],
    [start("2026-03-11"), "refused"],
    [start(YESTERDAY) - 1, "refused"],
    [start(YESTERDAY), "left"],
    [ASKED, "left"],
  ])("shows, refuses or leaves to the open window a row at %i of the days to the 10th", (ms, what) => {
    const shown = (): string =>
      passOver(CLOSED, [row("a", at(ms))]).emitted.length === 1 ? "shown" : "left";
    if (what === "refused") expect(shown).toThrow(DataError);
    else expect(shown()).toBe(what);
  });

  it("lets a row move no sooner than the count was asked, where that is before yesterday", () => {
    const asked = start("2026-03-15");
    const count = { ...counted(0), asked, answered: asked };
    expect(() => passOver(CLOSED, [row("a", at(asked - 1))], { count })).toThrow(DataError);
    expect(passOver(CLOSED, [row("a", at(asked))], { count }).emitted).toEqual([]);
  });

  it("holds back what is later than its end, and takes no later row than the first count for the newest", () => {
    const [until, latest] = [ASKED - 10, ASKED - 20];
    const rows = [until + 1, until, latest + 1, latest, latest - 1].map((ms, nth) => row(`k${nth}`, at(ms)));
    const { pass, emitted } = passOver(REACHING, rows, { until, latest });
    expect([emitted.length, pass.newest]).toEqual([4, at(latest)]);
    const same = [row("a", "2026-03-05T12:00:00Z"), row("b", "2026-03-05T12:00:00.000Z")];
    // One moment in two spellings: the same one whatever order they come in.
    const newest = [same, same.toReversed()].map((order) => passOver(REACHING, order).pass.newest);
    expect(newest).toEqual(["2026-03-05T12:00:00Z", "2026-03-05T12:00:00Z"]);
  });

  it.each([
    ["reject", "", 0, true],
    ["pass", "", 1, false],
    ["drop", "", 0, false],
  ] as const)("does with rows without a key as it is told: %s", (onMissingKey, key, lines, isUnclean) => {
    const { pass, emitted } = passOver(REACHING, [row(key, IN_MARCH)], { onMissingKey });
    expect(emitted).toHaveLength(lines);
    if (isUnclean)
      expect(() => pass.refuseMissingKeys()).toThrow(
        "Cannot read 2026-03-01 up to now: 1 row came without a key. The others were read",
      );
    else expect(() => pass.refuseMissingKeys()).not.toThrow();
  });

  it("counts by days what is shown and what of it is held back, once for each key", () => {
    const held = (key: string, cursor: string | null): Row => ({ ...row(key, cursor), isHeld: true });
    const rows = [
      ...[
        row("a", "2026-03-02T01:00:00Z"),
        row("b", "2026-03-02T02:00:00Z"),
        row("c", "2026-03-04T01:00:00Z"),
      ],
      ...[
        held("d", "2026-03-04T02:00:00Z"),
        held("d", "2026-03-04T02:00:00Z"),
        held("e", "2026-03-05T00:00:00Z"),
      ],
      row("f", "2026-03-02T23:59:59.999Z"),
    ];
    const pass = new Pass(CLOSED, counted(6), new SeenRows(), rulesWith());
    const { lines, facts } = pass.accept({ rows });
    expect([lines.length, facts?.held, facts?.unreadable]).toEqual([4, 2, 0]);
    expect([...pass.rowsByDay]).toEqual([
      ["2026-03-02", 3],
      ["2026-03-04", 2],
      ["2026-03-05", 1],
    ]);
    expect([...pass.heldByDay]).toEqual([
      ["2026-03-04", 1],
      ["2026-03-05", 1],
    ]);
    expect([pass.shown, pass.hasTooMany]).toEqual([6, false]);
    pass.accept({ rows: [row("g", IN_MARCH)] });
    expect([pass.shown, pass.hasTooMany]).toEqual([7, true]);
  });
});

describe("judge()", () => {
  const shown = (window: Window, numbers: Partial<Pass>): Pass =>
    Object.assign(new Pass(window, counted(0), new SeenRows(), rulesWith()), numbers);

  it.each<[string, Window, Count, Partial<Pass>, string]>([
    ["a closed window that shows what was counted", CLOSED, counted(5), { beforeCount: 5 }, "proven"],
    ["a closed window that lacks a row", CLOSED, counted(5), { beforeCount: 4 }, "short"],
    ["one where others stand in", CLOSED, counted(5), { beforeCount: 4, distinct: 5 }, "short"],
    ["a closed window that shows more", CLOSED, counted(5), { beforeCount: 6 }, "too many"],
    ["one that reaches back, and lacks", REACHING, counted(5), { beforeCount: 4, dated: 9 }, "split"],
    ["one that reaches back, and shows more", REACHING, counted(5), { beforeCount: 6 }, "split"],
    ["one that reaches back, and is exact", REACHING, counted(5), { beforeCount: 5 }, "proven"],
    ["yesterday and today with newcomers", RECENT, counted(5), { beforeCount: 4, dated: 7 }, "proven"],
    ["yesterday and today with too few", RECENT, counted(5), { dated: 4, undated: 2 }, "short"],
    ["everything without its undated", WHOLE, counted(5, 2), { beforeCount: 5, undated: 1 }, "split"],
    ["everything", WHOLE, counted(5, 2), { beforeCount: 5, undated: 2 }, "proven"],
    ["the undated", { kind: "undated" }, counted(5, 2), { undated: 2 }, "proven"],
    ["too few undated", { kind: "undated" }, counted(5, 2), { undated: 1 }, "short"],
    ["a stream without days", { kind: "all" }, counted(5), { distinct: 5 }, "proven"],
    ["one that is short", { kind: "all" }, counted(6), { distinct: 5 }, "short"],
    ["one that shows more", { kind: "all" }, counted(4), { distinct: 5 }, "too many"],
  ])("%s", (_, window, count, numbers, verdict) => {
    expect(judge(window, rulesWith(), count, shown(window, numbers))).toBe(verdict);
  });
});

describe("provenBy()", () => {
  const rows = [row("a", IN_MARCH), row("b", null), row("c", "no date")];

  it("keeps how many without a date were counted, which is what the next count is compared with", () => {
    // The service took the cursor that no rule can read for a date.
    const count = counted(2, 1);
    const digest = expect.stringMatching(/^[\w-]{12}$/);
    expect(provenBy(WHOLE, passOver(WHOLE, rows, { count }).pass, count)).toEqual({
      ...{ window: WHOLE, kind: "proven", newest: IN_MARCH, undatedRows: 1, undatedSeen: [digest, digest] },
    });
    const unknown = { ...counted(0), known: false };
    expect(provenBy(WHOLE, passOver(WHOLE, rows, { count: unknown }).pass, unknown)).toMatchObject({
      undatedRows: 2,
    });
  });

  it("says nothing of them where the window does not bring them", () => {
    const { pass } = passOver(REACHING, [row("a", IN_MARCH)]);
    expect(provenBy(REACHING, pass, counted(1))).not.toHaveProperty("undatedRows");
  });
});

describe("nextAttempt()", () => {
  const [both, noList, noExport] = [
    { isExported: true, isListed: true },
    { isExported: true, isListed: false },
    { isExported: false, isListed: true },
  ];
  const five = (what: string): string[] => Array(5).fill(what);
  it.each([
    ["tries a window twice and then halves it", { splits: true }, both, ["stream", "stream", "halves"]],
    ["halves at once what is too large", { splits: true, isTooLarge: true }, both, ["halves"]],
    ["tries five times what has no halves", {}, both, [...five("stream"), "pages", "give up"]],
    ["reads no pages without a list", {}, noList, [...five("stream"), "give up"]],
    ["reads only pages without an export", {}, noExport, [...five("pages"), "give up", "give up"]],
    ["reads a day by pages at once where exports fail", { exportsFail: true }, both, ["pages", "give up"]],
    [
      "tries more days once where exports fail, then by pages",
      { splits: true, exportsFail: true },
      both,
      ["stream", "pages", "halves"],
    ],
    [
      "tries a day once where such days are known to fall short",
      { short: 2 },
      both,
      ["stream", "pages", "give up"],
    ],
    [
      "tries it as often as any other where it does not fall short alike",
      { short: 1 },
      both,
      ["stream", "pages", "stream", "stream", "stream", "pages", "give up"],
    ],
    ["halves at once more days that fall short", { splits: true, short: 1 }, both, ["stream", "halves"]],
  ])("%s", (_, given, rules, expected) => {
    const {
      splits = false,
      isTooLarge = false,
      exportsFail = false,
      short = 0,
    } = {
      ...(given as { splits?: boolean; isTooLarge?: boolean; exportsFail?: boolean; short?: number }),
    };
    const windowSize = Object.assign(new WindowSize(250_000), { exportsFail });
    let last = "";
    const next = expected.map((_, failures) => {
      const isPaged = last === "pages";
      const isInVain = failures > 0 && failures <= short;
      last = nextAttempt(failures, { splits, isTooLarge, isPaged, isInVain }, { ...rules, windowSize });
      return last;
    });
    expect(next).toEqual(expected);
  });
});
