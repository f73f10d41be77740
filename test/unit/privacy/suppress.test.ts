import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { toLatin1 } from "../../../src/base/text.ts";
import { type NamingField, readSuppression, type Suppression } from "../../../src/privacy/suppress.ts";
import { file } from "../../support/cli.ts";

const sha256 = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const suppression = async (...lines: readonly string[]) =>
  readSuppression(await file("suppressed.txt", lines.join("\n")));

/** Judges the value of a field in a row, as JSON. */
const hasJson = (read: Suppression, field: NamingField, json: string): boolean | undefined =>
  read.groupsOf(field === "domain" ? "companies" : "people")?.hasJson(field, toLatin1(json));

/** A text as JSON with its letters as escapes. */
const escaped = (text: string): string =>
  JSON.stringify(text).replace(/[a-z@]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);

const KINDS = {
  id: {
    named: ["Ab-1", "ÄÖ1", "0F1E2D3C-0000-4000-8000-00000000000A"],
    hashed: ["Ab-1", "ÄÖ1", "0f1e2d3c-0000-4000-8000-00000000000a"],
    same: [
      ...["Ab-1", " Ab-1\n", "A\u0000b-1", "A\u200bb-1", "ÄÖ1", "A\u0308O\u03081"],
      ...["0f1e2d3c-0000-4000-8000-00000000000a", "0F1E2D3C-0000-4000-8000-00000000000A"],
    ],
    others: ["Ab-12", "ab-1", "AB-1", "äÖ1", "b-1", "", "ab 2", "Ab-1,x"],
  },
  email: {
    named: ["Ann.Lee@Example.com", "x@münchen.example", "o'neil@b.example"],
    hashed: ["ann.lee@example.com", "x@xn--mnchen-3ya.example", "o'neil@b.example"],
    same: [
      ...["ann.lee@example.com", "ANN.LEE@EXAMPLE.COM.", " ann.lee@example.com ", "'ann.lee@example.com'"],
      ...["\u0000ann.lee@example.com", "ann.lee@example\u3002com", "x@MÜNCHEN.example"],
      ...["X@XN--MNCHEN-3YA.EXAMPLE", "x@mu\u0308nchen.example", "O'Neil@b.example", "ann.lee @example.com"],
      ...["other@b.example, ann.lee@example.com", "Ann Lee <ann.lee@example.com>"],
      ...["Ann Lee (ann.lee@example.com)|other@b.example", "mailto:ann.lee@example.com?subject=x"],
      ...[..." ;|/&?[]{}()،、，；"].map((sign) => `other@b.example${sign}ann.lee@example.com${sign}`),
      '["other@b.example","ann.lee@example.com"]',
    ],
    others: ["annlee@example.com", "ann.lee@example.com.au", "ann.lee@sub.example.com", "example.com", "@"],
  },
  domain: {
    named: ['"www.Example.com."', "bücher.example", "10.example"],
    hashed: ["example.com", "xn--bcher-kva.example", "10.example"],
    same: [
      ...["example.com", "WWW.example.com", "example.com.", " example.com\t", "exam\u00adple.com"],
      ...["www.xn--bcher-kva.example", "BÜCHER.example", "bu\u0308cher.example.", "10.example\u0000"],
      "other.example\nwww.Example.com",
    ],
    others: ["example.org", "sub.example.com", "com", "1.example"],
  },
} as const;

describe.each(Object.entries(KINDS))("a suppressed %s", (kind, { named, hashed, same, others }) => {
  const field = kind as keyof typeof KINDS;

  it.each([
    ["by names", named],
    ["by digests of normal forms", hashed.map(sha256)],
    ["by digests that echo made", hashed.map((text) => sha256(`${text}\n`))],
    ["by both", [...named, sha256("x").toUpperCase()]],
  ])("is known %s in every spelling, and no one else", async (_, lines) => {
    const read = await suppression(...lines);
    for (const text of same) {
      const jsons = [JSON.stringify(text), ...(/[\\\p{Cc}]/u.test(text) ? [] : [escaped(text)])];
      const found = [read.has(field, text), ...jsons.map((json) => hasJson(read, field, json))];
      expect([text, ...found]).toEqual([text, ...found.map(() => true)]);
    }
    for (const text of others) {
      const found = [read.has(field, text), hasJson(read, field, JSON.stringify(text))];
      expect([text, ...found]).toEqual([text, false, false]);
    }
  });
});

describe("a value of a row", () => {
  it("names people by numbers of any size and in lists too", async () => {
    const read = await suppression("12345678901234567890", "7", "a@b.example");
    for (const json of ["12345678901234567890", "7"]) expect(hasJson(read, "id", json), json).toBe(true);
    for (const json of ["null", "true", "{}", "8", '{"7":"x"}'])
      expect(hasJson(read, "id", json), json).toBe(false);
    expect(hasJson(read, "email", '["x",[["A@b.example"]]]')).toBe(true);
    expect(["a@b.example", ["x", { work: "A@B.example" }]].map((value) => read.has("email", value))).toEqual([
      true,
      true,
    ]);
  });

  it("names another if it differs in one character, whatever its length", async () => {
    const texts = Array.from({ length: 40 }, (_, nth) => "abcdefghij".repeat(4).slice(0, nth + 1));
    const groups = (await suppression(...texts.map((text) => `${text}-x`))).groupsOf("people");
    const isKnown = (text: string): unknown[] => {
      const json = JSON.stringify(text);
      const both = [groups?.hasUsual(json, undefined), groups?.hasUsual('"1"', json)];
      return [...both, groups?.hasJson("id", json), groups?.hasJson("email", json)];
    };
    for (const text of texts) {
      expect([text, ...isKnown(`${text}-x`)]).toEqual([text, true, true, true, true]);
      expect(isKnown(`${text}-X`.toUpperCase())).toEqual([false, true, false, true]);
      for (const at of [0, Math.floor(text.length / 2), text.length - 1]) {
        const other = `${text.slice(0, at)}7${text.slice(at + 1)}-x`;
        expect([other, ...isKnown(other)]).toEqual([other, false, false, false, false]);
      }
    }
  });
});

describe("a suppress_file", () => {
  it.each<[text: string, ids: readonly string[]]>([
    ["\ufeff# people\n\n p1  # since May\n#p2", ["p1"]],
    ["p1\r\n\r\np2\r\n", ["p1", "p2"]],
    ["p1\rp2", ["p1", "p2"]],
    ["a_b-C\nauth0|P1\n-x\n7.1\n", ["a_b-C", "auth0|P1", "-x", "7.1"]],
    ["E-Mail\np1\n", ["p1"]],
    ["# none\n", []],
  ])("%j names %j", async (text, ids) => {
    const read = readSuppression(await file("suppressed.txt", text));
    expect(read.entries).toBe(ids.length);
    expect(ids.filter((id) => !read.has("id", id))).toEqual([]);
    for (const other of ["p2", "people", "p1p2", ""].filter((id) => !ids.includes(id)))
      expect(read.has("id", other), other).toBe(false);
  });

  it.each([
    ...["a@b", "@b.example", "a b", "a@b.example c@d.example", "a@b.example,reason", "p1;p2", "<a>"],
    ...["https://a.example", "ann@example.", "m\ufffdller@b.example", "a\ufffd", "a\u00a0b", "\u200b"],
    ...["acme.example/", "acme.example/about", "www.acme.example/", "acme.example:443", "acme.example#top"],
    ...["acme.example?utm_source=x", "*.acme.example", ".acme.example", "domain:acme.example", "id:p3"],
    ...["'p3'", "\u201cp3\u201d", "linkedin.com/in/ann", "+49 1761234", "@acme.example", "sha256=ab"],
    ...["*@acme.example", ".*@acme.example", "-ann@acme.example", "!ann@acme.example", "-_-", "p1.", "|p1"],
    ...["email=ann@acme.example", "acme..example", "acme.example-", "-acme.example", "p1|"],
    ...["acme.example|keep.example", `${"a".repeat(64)}.`],
    ...["sha256:12", `sha256:${"a".repeat(63)}`, `sha256:${"a".repeat(65)}`, `sha256:${"g".repeat(64)}`],
  ])("with %j on its third line is refused by that line, which is not quoted", async (line) => {
    const path = await file("suppressed.txt", `p1\n\n${line}\n`);
    const refuse = (): unknown => readSuppression(path);
    expect(refuse).toThrow(`Cannot use the suppress_file "${path}": line 3 must be an e-mail`);
    expect(refuse).not.toThrow(line);
  });

  it("takes 64 hexadecimal digits for an id and for a digest, and names them and those of other digests", async () => {
    const digits = sha256("p2").slice("sha256:".length).toUpperCase();
    const other = await suppression("p1", "5d41402abc4b2a76b9719d911017c592", digits.slice(0, 40));
    expect(other.warnings).toEqual([expect.stringContaining("digits in lines 2, 3: they are read as an id")]);
    const read = await suppression(`\u200b${digits.slice(0, 9)}\u00ad${digits.slice(9)}`);
    expect(read.entries).toBe(1);
    expect([digits, "p2", "p1"].map((id) => read.has("id", id))).toEqual([true, true, false]);
    expect(read.warnings).toEqual([expect.stringContaining("has only hexadecimal digits in line 1: ")]);
  });

  it.each([
    ["Latin-1", Buffer.from("p1\nm\u00fcller@b.example", "latin1"), "line 2 is not UTF-8"],
    ["a workbook", Buffer.from("PK\u0003\u0004"), "it is a zip archive"],
    ["a list in JSON", Buffer.from('[\n  "p1"\n]'), "it is one JSON array"],
  ])("that is %s is refused as such", async (_, bytes, why) => {
    const path = await file("suppressed.txt", bytes);
    expect(() => readSuppression(path)).toThrow(why);
  });

  it.each(["", " \n\r\n\ufeff"])("that is empty is refused: %j", async (text) => {
    await expect(suppression(text)).rejects.toThrow("it is empty");
  });

  it("with many wrong lines is refused by the first five", async () => {
    await expect(suppression(..."abcdef".split("").map((one) => `${one} b`))).rejects.toThrow(
      "lines 1, 2, 3, 4, 5 and others must be an e-mail",
    );
  });

  it("has the same digest in any order and with any comments, and another with another entry", async () => {
    const { digest } = await suppression("p1", "p2");
    expect((await suppression("# x", "p2", "p1")).digest).toBe(digest);
    expect((await suppression("p1", "p3")).digest).not.toBe(digest);
  });
});
