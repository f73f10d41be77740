import { describe, expect, it } from "vitest";
import { NORMALIZATION } from "../../../src/config/items.ts";
import {
  digestsIn,
  isAmount,
  isDayValue,
  isSetting,
  listOf,
  moneyIn,
  NONE,
  NotOurs,
  parseEntry,
  parsePacked,
  short,
  toCount,
  toEntry,
  toMs,
  toText,
} from "../../../src/jobs/parse.ts";

const [TIME, LATER, DAY] = ["2026-03-02T10:00:00.000Z", "2026-03-02T11:00:00.000Z", "2026-03-02"];
const [AT, LATE] = [Date.parse(TIME), Date.parse(LATER)];
const DIGEST = "abcdefghij-_0123";

const sub = { id: "r.0", step: "open", day: DAY, sync: "7", job: "j", at: TIME };
const all = {
  ...sub,
  ...{ ended: LATER, not_before: LATER, asked: LATER, misses: 2, code: "X", charged: 1.5, sources: ["crm"] },
};
const parsedSub = {
  ...{ id: "r.0", at: AT, step: "open", day: DAY, sync: "7", job: "j", ended: null, notBefore: null },
  ...{ asked: null, charged: 0, misses: 0, code: null, sources: [] },
};
const handle = { id: "r.1", at: TIME, day: DAY, job: "j", sealed: "s", sure: true, cost: 3 };
const parsedHandle = { ...handle, at: AT };

const subFrom = (fields: object): unknown =>
  parseEntry({ item: DIGEST, subs: [{ ...sub, ...fields }] })?.[1].subs["r.0"];
const handleFrom = (fields: object): unknown =>
  parseEntry({ item: DIGEST, day: DAY, handle: { ...handle, ...fields } })?.[1].handle;

describe("parseEntry()", () => {
  it("reads an item with all that is known of it, which is written as it was", () => {
    const entry = { item: DIGEST, day: DAY, handle, subs: [all, { ...sub, id: "r.2", job: "k" }] };
    const parsed = parseEntry(entry);
    const known = {
      ended: LATE,
      notBefore: LATE,
      asked: LATE,
      misses: 2,
      code: "X",
      charged: 1.5,
      sources: ["crm"],
    };
    const subs = { "r.0": { ...parsedSub, ...known }, "r.2": { ...parsedSub, id: "r.2", job: "k" } };
    expect(parsed).toEqual([DIGEST, { day: DAY, handle: parsedHandle, subs }]);
    expect(parsed && toEntry(parsed)).toEqual(entry);
    expect(parseEntry({ item: DIGEST })).toEqual([DIGEST, { day: "", handle: null, subs: {} }]);
    expect(toEntry([DIGEST, { day: "", handle: null, subs: {} }])).toEqual({ item: DIGEST });
  });

  it.each<[string, unknown]>([
    ["no object", [DIGEST]],
    ["no digest", {}],
    ["a digest that is short", { item: DIGEST.slice(1) }],
    ["a digest that is long", { item: `${DIGEST}x` }],
    ["a digest of other signs", { item: DIGEST.replace("a", "+") }],
    ["no day", { item: DIGEST, day: "2026-02-30" }],
    ["no text as its day", { item: DIGEST, day: 5 }],
    ["no list of submissions", { item: DIGEST, subs: {} }],
    ["a submission that is none", { item: DIGEST, subs: [sub, 5] }],
    ["a handle that is none", { item: DIGEST, day: DAY, handle: 5 }],
  ])("takes %s for none of ours", (_what, value) => {
    expect(parseEntry(value)).toBeUndefined();
  });

  it.each<[object]>([
    [{ id: 5 }],
    [{ id: undefined }],
    [{ id: "__proto__" }],
    [{ step: "gone" }],
    [{ step: undefined }],
    [{ sync: 7 }],
    [{ at: null }],
    [{ at: "soon" }],
    [{ at: "+010000-01-01T00:00:00Z" }],
    [{ day: "" }],
    [{ day: null }],
    [{ day: "2026-13-01" }],
    [{ job: null }],
    [{ job: "" }],
    [{ job: 5 }],
  ])("takes a submission with %j for none of ours", (fields) => {
    expect(subFrom(fields)).toBeUndefined();
  });

  it.each<[object, object]>([
    [{ sync: undefined }, { sync: "" }],
    [
      { step: "unknown", job: null },
      { step: "unknown", job: null },
    ],
    [
      { step: "failed", job: 5 },
      { step: "failed", job: null },
    ],
    [{ ended: "soon", not_before: 5, asked: "" }, {}],
    [{ misses: -1 }, { misses: 0 }],
    [{ misses: 1.5 }, { misses: 0 }],
    [{ misses: "2" }, { misses: 0 }],
    [{ charged: 0.5 }, { charged: 0.5 }],
    [{ charged: -1 }, { charged: 0 }],
    [{ charged: Number.POSITIVE_INFINITY }, { charged: 0 }],
    [{ code: "" }, { code: null }],
    [{ code: 5 }, { code: null }],
    [{ sources: "crm" }, { sources: [] }],
    [{ sources: ["crm", 5, null, "ads"] }, { sources: ["crm", "ads"] }],
  ])("reads a submission with %j as %j", (fields, parsed) => {
    expect(subFrom(fields)).toEqual({ ...parsedSub, ...parsed });
  });

  it.each<[object]>([
    [{ id: 5 }],
    [{ at: "soon" }],
    [{ day: "" }],
    [{ day: "x" }],
    [{ cost: -1 }],
    [{ cost: "3" }],
    [{ cost: null }],
  ])("takes a handle with %j for none of ours", (fields) => {
    expect(handleFrom(fields)).toBeUndefined();
  });

  it.each<[object, object]>([
    [{ cost: undefined }, { cost: 0 }],
    [{ job: "" }, { job: null }],
    [{ sealed: 5 }, { sealed: null }],
    [{ sure: "true" }, { sure: false }],
    [{ sure: undefined }, { sure: false }],
  ])("reads a handle with %j as %j", (fields, parsed) => {
    expect(handleFrom(fields)).toEqual({ ...parsedHandle, ...parsed });
  });
});

describe("single values", () => {
  it("are read for what they are, and nothing else", () => {
    expect([0, 0.5, 1e9, -1, Number.NaN, Number.POSITIVE_INFINITY, "1", null].map(isAmount)).toEqual([
      ...[true, true, true, false, false, false, false, false],
    ]);
    expect([0, 3, 1.5, -1, "3", null].map(toCount)).toEqual([0, 3, 0, 0, 0, 0]);
    expect([DAY, "2026-02-29", "", 5, null].map(isDayValue)).toEqual([true, false, false, false, false]);
    const settings = ["companyLookup", "emailCheck", "emailVerification", "company_lookup", "", null];
    expect(settings.map(isSetting)).toEqual([true, true, true, false, false, false]);
    const moments = [
      TIME,
      "0001-01-01T00:00:00Z",
      "9999-12-31T23:59:59.999Z",
      "0000-12-31T23:59:59Z",
      AT,
      null,
      "",
    ];
    const [first, last] = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")];
    expect(moments.map(toMs)).toEqual([AT, first, last, null, null, null, null]);
    expect([AT, 0, null].map(toText)).toEqual([TIME, "1970-01-01T00:00:00.000Z", null]);
  });

  it("are left out where they say nothing", () => {
    const fields = { a: null, b: undefined, c: false, d: 0, e: "", f: [] };
    expect(short(fields)).toEqual({});
    const kept = { a: "0", b: 1, c: true, d: [0], e: {} };
    expect(short(kept)).toEqual(kept);
  });
});

describe("digestsIn()", () => {
  it("says how keys were made, of this version and of older ones", () => {
    const made = [
      { salt: "s", normalization: NORMALIZATION },
      { salt: null, normalization: 0 },
    ];
    for (const one of made) expect(digestsIn({ ...one, more: 1 })).toEqual(one);
  });

  it.each<[object, string]>([
    [{ salt: 5, normalization: 1 }, 'it has no "salt" and "normalization"'],
    [{ normalization: 1 }, 'it has no "salt" and "normalization"'],
    [{ salt: "s", normalization: "1" }, 'it has no "salt" and "normalization"'],
    [{ salt: "s", normalization: NORMALIZATION + 1 }, "a newer version of this program wrote it"],
  ])("throws for %j: %s", (fields, why) => {
    expect(() => digestsIn(fields as never)).toThrow(new NotOurs(why));
  });
});

describe("listOf() and moneyIn()", () => {
  it("read each entry, or name the place of one that is not ours", () => {
    const parse = (entry: unknown): number | undefined => (typeof entry === "number" ? entry * 2 : undefined);
    expect(listOf([1, 2], "list", parse)).toEqual([2, 4]);
    expect(() => listOf([1, "2"], "list", parse)).toThrow(
      new NotOurs("list[1] is not what this connector writes"),
    );
    for (const none of [undefined, null, { length: 0 }])
      expect(() => listOf(none, "list", parse)).toThrow(new NotOurs('it has no list "list"'));
  });

  it("read packed digests by day, of which a day may have none", () => {
    const packed = [DAY, DIGEST + DIGEST];
    expect([packed, [DAY, ""], [...packed, "more"]].map(parsePacked)).toEqual([packed, [DAY, ""], packed]);
    const wrong = [
      [DAY, DIGEST.slice(1)],
      [DAY, 5],
      ["x", DIGEST],
      [DAY],
      DAY,
      [DAY, DIGEST.replace("a", "=")],
    ];
    expect(wrong.map(parsePacked)).toEqual(wrong.map(() => undefined));
  });

  const money = { spent: [[DAY, "s", "r", 1, 0, 2.5]], prices: [[AT, 2]], blind: [["stream", -1]] };

  it("read the counters, or call them missing unless something stands for them", () => {
    expect(moneyIn(money)).toEqual(money);
    expect(moneyIn({}, NONE)).toEqual({ spent: [], prices: [], blind: [] });
    for (const name of ["spent", "prices", "blind"])
      expect(() => moneyIn({ ...money, [name]: undefined })).toThrow(new NotOurs(`it has no list "${name}"`));
  });

  it.each<[string, unknown]>([
    ["spent", ["x", "s", "r", 1, 0, 2]],
    ["spent", [DAY, 5, "r", 1, 0, 2]],
    ["spent", [DAY, "s", 5, 1, 0, 2]],
    ["spent", [DAY, "s", "r", -1, 0, 2]],
    ["spent", [DAY, "s", "r", 1, "0", 2]],
    ["spent", [DAY, "s", "r", 1, 0]],
    ["prices", [-1, 2]],
    ["prices", [AT, null]],
    ["blind", [5, 1]],
    ["blind", ["stream", 1.5]],
    ["blind", ["stream"]],
  ])("refuse what stands in %s: %j", (name, wrong) => {
    const list = [...money[name as keyof typeof money], wrong];
    expect(() => moneyIn({ ...money, [name]: list })).toThrow(`${name}[1] is not what this connector writes`);
  });
});
