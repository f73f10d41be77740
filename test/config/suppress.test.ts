import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { readSuppression } from "../../src/config/suppress.ts";
import { toLatin1 } from "../../src/latin1.ts";
import { file } from "../support/cli.ts";

const sha256 = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const suppression = async (...lines: readonly string[]) =>
  readSuppression(await file("suppressed.txt", lines.join("\n")));

describe("readSuppression()", () => {
  it("reads an entry a line, without comments, blank lines and a byte order mark", async () => {
    const read = await suppression("\ufeff# people", "", " p1  # since May", "\ta@b.example\r", "#p2");
    expect([read.entries, read.has("id", "p1"), read.has("email", "a@b.example")]).toEqual([2, true, true]);
    expect([read.has("id", "p2"), read.has("id", "people"), read.has("id", "")]).toEqual([
      false,
      false,
      false,
    ]);
    expect(readSuppression(null).entries).toBe(0);
  });

  it.each([
    "a@b",
    "@b.example",
    "a b",
    "a@b.example c@d.example",
    "a@b.example,reason",
    "p1;p2",
    "sha256:12",
  ])("names the line of %j and does not quote it", async (line) => {
    const path = await file("suppressed.txt", `p1\n\n${line}\n`);
    const message = (() => {
      try {
        readSuppression(path);
        return "";
      } catch (error) {
        return String(error);
      }
    })();
    expect(message).toContain(`Cannot use the suppress_file "${path}": line 3 is no e-mail`);
    expect(message.replace(path, "")).not.toContain(line);
  });

  it("names the file that it cannot read", () => {
    expect(() => readSuppression("/nowhere/at/all.txt")).toThrow(
      'Cannot read the suppress_file "/nowhere/at/all.txt": there is no such file or folder',
    );
  });

  it("has a digest of what is named, whatever the order and the comments", async () => {
    const { digest } = await suppression("p1", "p2");
    expect((await suppression("# x", "P2", "p1")).digest).toBe(digest);
    expect((await suppression("p1", "p3")).digest).not.toBe(digest);
  });
});

const SPELLINGS = {
  id: {
    named: ["Ab-1", "ÄÖ1"],
    same: ["ab-1", "AB-1", " ab-1\n", "a\u0000b-1", "a\u200bb-1", "äö1", "A\u0308o\u03081"],
    others: ["ab-12", "b-1", "", "ab 2"],
  },
  email: {
    named: ["Ann.Lee@Example.com", "x@münchen.example", "o'neil@b.example"],
    same: [
      ...["ann.lee@example.com", "ANN.LEE@EXAMPLE.COM.", " ann.lee@example.com ", "'ann.lee@example.com'"],
      ...["\u0000ann.lee@example.com", "ann.lee@example\u3002com", "x@MÜNCHEN.example"],
      ...["x@xn--mnchen-3ya.example", "X@XN--MNCHEN-3YA.EXAMPLE", "x@mu\u0308nchen.example"],
      ...["other@b.example, ann.lee@example.com", "O'Neil@b.example", "ann.lee @example.com"],
    ],
    others: ["annlee@example.com", "ann.lee@example.com.au", "ann.lee@sub.example.com", "example.com", "@"],
  },
  domain: {
    named: ["www.Example.com", "bücher.example", "10.example"],
    same: [
      ...["example.com", "WWW.example.com", "example.com.", " example.com\t", "exam\u00adple.com"],
      ...["www.xn--bcher-kva.example", "BÜCHER.example", "bu\u0308cher.example.", "10.example\u0000"],
    ],
    others: ["example.org", "sub.example.com", "com", "1.example"],
  },
} as const;

describe.each(Object.entries(SPELLINGS))("Suppression.has() of %s", (kind, { named, same, others }) => {
  const field = kind as keyof typeof SPELLINGS;
  const normal = { id: ["ab-1", "äö1"], email: ["ann.lee@example.com", "x@xn--mnchen-3ya.example"] };

  it("knows every spelling, in plain text and as the JSON of a row", async () => {
    const read = await suppression(...named);
    for (const text of same) {
      expect([text, read.has(field, text)]).toEqual([text, true]);
      const escaped = JSON.stringify(text).replace(
        /[a-z@]/g,
        (one) => `\\u00${one.charCodeAt(0).toString(16)}`,
      );
      const jsons = [JSON.stringify(text), ...(text.includes("\\") || /\p{Cc}/u.test(text) ? [] : [escaped])];
      for (const json of jsons) expect([json, read.hasJson(field, toLatin1(json))]).toEqual([json, true]);
    }
    for (const text of others) {
      expect([text, read.has(field, text)]).toEqual([text, false]);
      expect(read.hasJson(field, toLatin1(JSON.stringify(text)))).toBe(false);
    }
  });

  it("knows digests of normal forms", async () => {
    const names = field === "domain" ? ["example.com", "xn--bcher-kva.example"] : normal[field];
    const read = await suppression(...names.map(sha256), sha256("x").toUpperCase());
    expect(read.entries).toBe(3);
    expect(same.filter((text) => read.has(field, text)).length).toBeGreaterThan(same.length / 2);
    expect(others.filter((text) => read.has(field, text))).toEqual([]);
    expect(read.hasJson("id", '"X"')).toBe(true);
  });
});

it("Suppression.hasJson() takes numbers and lists for what they say", async () => {
  const read = await suppression("12345678901234567890", "7", "a@b.example");
  const seen = ["12345678901234567890", "7", '["x",["A@b.example"]]', "null", "true", "{}", "8"].map(
    (json) => [read.hasJson("id", json), read.hasJson("email", json)],
  );
  expect(seen.map(([id]) => id)).toEqual([true, true, true, false, false, false, false]);
  expect(seen[2]).toEqual([true, true]);
});
