import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { readSuppression } from "../../../src/config/suppress.ts";
import { toLatin1 } from "../../../src/latin1.ts";
import { file } from "../../support/cli.ts";

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

  it("knows names and digests of a file that holds both, in either order", async () => {
    const [plain, hashed] = ["a@b.example", sha256("c@d.example")];
    for (const lines of [
      [plain, hashed],
      [hashed, plain],
    ]) {
      const read = await suppression(...lines);
      const held = ["a@b.example", "C@d.example", "e@f.example"].map((email) => [
        read.has("email", email),
        read.hasJson("email", JSON.stringify(email)),
        read.hasUsual("email", JSON.stringify(email)),
      ]);
      expect(held).toEqual([
        [true, true, true],
        [true, true, true],
        [false, false, false],
      ]);
    }
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

describe("readSuppression(), line by line", () => {
  it.each<[line: string, names: "refused" | readonly string[]]>([
    ["p1", ["p1"]],
    ["P1 # why", ["p1"]],
    ["P1#2", ["p1#2"]],
    ["#p1", []],
    ["  # p1", []],
    ["a_b-C", ["a_b-c"]],
    ["Ann.Lee+x@B-c.Example.com", ["ann.lee+x@b-c.example.com"]],
    ["ann@example", "refused"],
    ["ann@example.", "refused"],
    ["ann@xn--bcher-kva.example", ["ann@xn--bcher-kva.example"]],
    ["ann@b\u00fccher.example", ["ann@xn--bcher-kva.example"]],
    ["www.A.example", ["a.example", "www.a.example"]],
    ["a.example.", ["a.example", "a.example."]],
    ["1.2.3.4", ["1.2.3.4"]],
    ["a.b/c", ["a.b/c"]],
    ["https://a.example", "refused"],
    ["a//b", "refused"],
    ["a;b", "refused"],
    ["a,b", "refused"],
    ['"a"', "refused"],
    ["<a>", "refused"],
    ["a>", "refused"],
    ["a\ufffd", "refused"],
    ["m\ufffdller@b.example", "refused"],
    ["a b", "refused"],
    ["a\u00a0b", "refused"],
    ["\u200b", "refused"],
    ["\u00c4\u00d61", ["\u00e4\u00f61"]],
    ["A\u0308", ["\u00e4"]],
    [`sha256:${"a".repeat(64)}`, [`sha256:${"a".repeat(64)}`]],
    [`SHA256:${"A".repeat(64)}`, [`sha256:${"a".repeat(64)}`]],
    [`sha256:${"a".repeat(63)}`, "refused"],
    [`sha256:${"a".repeat(65)}`, "refused"],
    [`sha256:${"g".repeat(64)}`, "refused"],
    [`xsha256:${"a".repeat(64)}`, [`xsha256:${"a".repeat(64)}`]],
  ])("takes %j for %j", async (line, names) => {
    if (names === "refused") await expect(suppression(line)).rejects.toThrow("line 1 is no e-mail");
    else {
      const { digest, entries } = await suppression(line);
      expect([digest, entries]).toEqual([
        sha256([...names].sort().join("\n")).slice(7),
        Math.min(1, names.length),
      ]);
    }
  });

  it.each([
    [1, "line 1 is"],
    [5, "line 1, 2, 3, 4, 5 is"],
    [6, "line 1, 2, 3, 4, 5 and others is"],
  ])("names of %i wrong lines five at most", async (count, said) => {
    const lines = Array.from({ length: count }, () => "a b");
    const path = await file("suppressed.txt", lines.join("\n"));
    expect(() => readSuppression(path)).toThrow(
      `Cannot use the suppress_file "${path}": ${said} no e-mail, domain or id, nor "sha256:" and 64 hexadecimal digits of one. Write one a line`,
    );
  });

  it.each(["\n", "\r\n", "\r"])("ends a line at %j", async (end) => {
    const read = readSuppression(await file("suppressed.txt", `p1${end}${end}p2${end}`));
    expect([read.entries, read.has("id", "p1"), read.has("id", "p2"), read.has("id", "p1p2")]).toEqual([
      2,
      true,
      true,
      false,
    ]);
  });
});

it("Suppression.hasJson() tells apart values of every length that differ in one place, in either case", async () => {
  const texts = Array.from({ length: 60 }, (_, nth) => "abcdefghij".repeat(7).slice(0, nth + 1));
  const read = await suppression(...texts.map((text) => `${text}-x`));
  const isFound = (json: string): boolean =>
    read.hasUsual("id", json) && read.hasJson("id", json) && read.hasJson("email", json);
  const isLost = (json: string): boolean =>
    read.hasUsual("email", json) || read.hasJson("id", json) || read.hasJson("email", json);
  for (const text of texts) {
    expect(isFound(JSON.stringify(`${text}-x`)), text).toBe(true);
    expect(isFound(JSON.stringify(`${text}-X`.toUpperCase())), text).toBe(true);
    for (const at of [0, Math.floor(text.length / 2), text.length - 1]) {
      const other = `${text.slice(0, at)}7${text.slice(at + 1)}-x`;
      expect(isLost(JSON.stringify(other)), other).toBe(false);
    }
    expect(isLost(JSON.stringify(`${text}-`)), text).toBe(false);
  }
});

it("Suppression.has() takes lists of domains and e-mails, and no list of ids", async () => {
  const read = await suppression("a@b.example", "c.example", "p1");
  expect(
    ["x@y.example, A@b.example", "x@y.example;a@b.example", "x\ra@b.example\nz"].map((text) =>
      read.has("email", text),
    ),
  ).toEqual([...[true, true, true]]);
  expect(read.has("domain", "d.example\nwww.C.example")).toBe(true);
  expect([
    read.has("id", "p1,p2"),
    read.has("id", "p1"),
    read.has("email", "p1"),
    read.has("domain", "p1"),
  ]).toEqual([...[false, true, true, true]]);
  for (const value of [null, 7, undefined, {}, ["a@b.example"]]) expect(read.has("email", value)).toBe(false);
  expect(readSuppression(null).has("id", "")).toBe(false);
  expect(read.hasJson("email", '"a@b.example."')).toBe(true);
  expect(read.hasJson("id", '"a@b.example."')).toBe(false);
  expect(read.hasJson("email", '["x",[["A@B.example"]]]')).toBe(true);
  expect(read.hasJson("domain", '"d.example;c.example"')).toBe(true);
});
