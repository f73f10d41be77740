import { describe, expect, it } from "vitest";
import {
  entriesOf,
  type ItemKind,
  NORMALIZATION,
  normalizeItem,
  spellingsOf,
} from "../../../src/config/items.ts";

describe("normalizeItem()", () => {
  it.each([
    " Example.COM ",
    "www.example.com",
    "example.com.",
    '"example.com"',
    "exam\u200bple.com",
    "‘example.com’",
    "www.example.com.",
    "example.com\u3002",
    "\uff37ww.example.com",
  ])("takes %j for example.com", (text) => {
    expect(normalizeItem("domain", text)).toBe("example.com");
  });

  it("knows names that begin with www only by what is left", () => {
    expect(normalizeItem("domain", "www.com")).toBe("www.com");
    expect(normalizeItem("domain", "www.example.co.uk")).toBe("example.co.uk");
  });

  it("takes both spellings of a name beyond ASCII for one", () => {
    expect(normalizeItem("domain", "BÜCHER.example")).toBe("xn--bcher-kva.example");
    expect(normalizeItem("domain", "xn--bcher-kva.example")).toBe("xn--bcher-kva.example");
  });

  it.each([
    "localhost",
    "12345",
    "1.2.3.4",
    "www.1.2.3.4",
    "a b.example",
    "https://example.com/x",
    "a@b.example",
    "",
    ".",
  ])("takes %j for no domain", (text) => {
    expect(normalizeItem("domain", text)).toBeNull();
  });

  it.each([
    [
      "a@x.example",
      [" A@X.example ", "a@x.example.", '"a@x.example"', '"a"@x.example', "'a@x.example'", "“a@x.example”"],
    ],
    [
      "a@x.example",
      ["‘a@x.example.’", "'a@x.example'.", "`a@x.example`", "a@x\u200b.example\u3002", "«a@x.example»"],
    ],
    ["a@xn--bcher-kva.example", ["a@bücher.example", "A@BU\u0308CHER.example.", "a@xn--bcher-kva.EXAMPLE"]],
    ["a@www.x.example", ["a@WWW.x.example"]],
    ["o'neil@x.example", ["O'Neil@x.example", "'o'neil@x.example'"]],
    ["am\u00e9lie@example.com", [" Ame\u0301lie@Example.com "]],
  ])("takes for %s each of %j", (address, texts) => {
    expect(texts.map((text) => normalizeItem("email", text))).toEqual(texts.map(() => address));
  });

  it("takes nothing else for an address", () => {
    for (const text of [
      "a",
      "a@b",
      "a b@c.example",
      "a@@b.example",
      "a@1.2.3.4",
      "@x.example",
      "a@x..example",
      "''@x",
      "a@.example",
      "a@x.",
      "a@x.example,b@x.example",
      "m\ufffdller@x.example",
      ...["(", ")", ",", ":", ";", "<", ">", "[", "]", "\\", " "].flatMap((sign) => [
        `a${sign}a@x.example`,
        `a@x${sign}x.example`,
        `a@x.exam${sign}ple`,
      ]),
    ])
      expect(normalizeItem("email", text)).toBeNull();
  });

  it("takes names and addresses of 254 characters, and no longer ones", () => {
    const label = "a".repeat(59);
    const domain = (length: number): string => `${`${label}.`.repeat(4)}${"b".repeat(length - 240)}`;
    for (const [kind, before] of [
      ["domain", ""],
      ["email", "a@"],
    ] as const) {
      const text = (length: number): string => before + domain(length - before.length);
      expect(normalizeItem(kind, text(254))).toBe(text(254));
      expect(normalizeItem(kind, text(255))).toBeNull();
    }
  });

  it("is idempotent", () => {
    for (const text of ["WWW.Example.com.", "BÜCHER.example"]) {
      const once = normalizeItem("domain", text);
      expect(normalizeItem("domain", once ?? "")).toBe(once);
    }
    for (const text of ["'Ann@Bücher.example.'", "o'neil@x.example"]) {
      const once = normalizeItem("email", text);
      expect(normalizeItem("email", once ?? "")).toBe(once);
    }
  });
});

describe("entriesOf()", () => {
  it("takes commas and line breaks for a list", () => {
    const items = entriesOf("domain", "a.example, b.example\nc.example,,").map(({ item }) => item);
    expect(items).toEqual(["a.example", "b.example", "c.example"]);
  });
});

describe("spellingsOf()", () => {
  it.each(["a@.example", "a@x.", "@x.example", "a a@x.example", `${"a".repeat(65)}@x.example`])(
    "knows no spelling under which %j was bought, which no version has sent",
    (text) => {
      expect(spellingsOf({ item: null, kind: "email", text }, 1)).toEqual([""]);
    },
  );

  const of = (text: string, normalization: number, kind: "email" | "domain" = "email"): readonly string[] =>
    entriesOf(kind, text).flatMap((entry) => spellingsOf(entry, normalization));

  it("begins with how the first normal form wrote the text, and has the others that mean the same", () => {
    expect(of(" 'A@X.example.' ", 1)[0]).toBe("'a@x.example.'");
    for (const text of ["a@x.example", "a@x.example.", "'a@x.example'"])
      expect(of(text, 1)).toEqual(expect.arrayContaining(["a@x.example", "a@x.example.", "'a@x.example'"]));
    for (const text of ["a@bücher.example", "a@xn--bcher-kva.example."])
      expect(of(text, 1)).toEqual(expect.arrayContaining(["a@bücher.example", "a@xn--bcher-kva.example"]));
  });

  it("is the item alone where the form is this one, and for domains, whose form is what it was", () => {
    expect(of("'a@x.example.'", NORMALIZATION)).toEqual(["a@x.example"]);
    expect(of("WWW.x.example.", 1, "domain")).toEqual(["x.example"]);
    expect(of("WWW.x.example.", 0, "domain")).toContain("www.x.example.");
  });
});

describe("what was bought under a spelling", () => {
  const DOMAINS = [
    ...["a.example", "A.Example", " a.example ", "a.example.", "a.example..", ".a.example", "a..example"],
    ...["www.a.example", "www.www.a.example", "a.www.example", "a.wwww.example", "www.example", "www.com."],
    ...["a_b.example", "a-b.example", "-a.example", "a!.example", "a.example!", "!a.example", "a.ex$ample"],
    ...["a.1", "1.a", "1.2.3.4", "1.2.3.4.5", "1.2", "0x7f.1", "12.", "a.b.c.d.e.example", "a"],
    ...[
      "a/b.example",
      "a\\b.example",
      "a?b.example",
      "a#b.example",
      "a:1.example",
      "a%b.example",
      "[a.example]",
    ],
    ...[
      "a@b.example",
      "a\tb.example",
      "\u00a0a.example",
      "a\u3002example",
      "a\uff0eexample\uff61",
      "'a.example'",
    ],
    ...["a`.example", "\u00aba.example\u00bb", "\u2018a\u2019.\u201cexample\u201d", "b\u00fccher.example"],
    ...[
      "xn--bcher-kva.example",
      "XN--BCHER-KVA.EXAMPLE",
      "a\u00ad.example",
      "\ufeffa.example",
      "a.example\u200f",
    ],
    ...[
      `${"a".repeat(63)}.example`,
      `${"a".repeat(64)}.example`,
      `a.${"b".repeat(63)}`,
      `a.${"b".repeat(64)}`,
    ],
    ...["", " ", ".", "..", "www.", "www..example", "\ud800.example"],
  ];
  const EMAILS = [
    ...["a@b.example", "A.B+c@B.Example", " a@b.example ", "a@b.example.", "a@b.example..", "a@.b.example"],
    ...["a@@b.example", "a@b@c.example", "@b.example", "a@", "a", "a@b", "a b@c.example", "a\t@b.example"],
    ...[
      "'a@b.example'",
      "'a'@b.example",
      "a'b@c.example",
      "`a@b.example'",
      "''a@b.example''",
      "a@'b.example'",
    ],
    ...['"a@b.example"', '"a b"@c.example', "\u2018a@b.example\u2019", "'a@b.example'.", "'a@b.example.'"],
    ...["a@b.example' .", "a@b.example. '", "' a@b.example", "a@b.example\u3002", "a@b\u3002example"],
    ...["a(b@c.example", "a,b@c.example", "a:b@c.example", "a;b@c.example", "a<b@c.example", "a>@c.example"],
    ...[
      "a[b@c.example",
      "a]@c.example",
      "a\\b@c.example",
      "a)@c.example",
      "a@www.b.example",
      "a@b:1.example",
    ],
    ...[
      "a@b\u00fccher.example",
      "\u00fc@b.example",
      "u\u0308@b.example",
      "\u00dc@b.example",
      "a\u200b@b.example",
    ],
    ...[
      "\ud800@b.example",
      "a@1.2.3.4",
      "a@[1.2.3.4]",
      "a@b_c.example",
      "a@b.example/c",
      "a@b.e",
      ".@b.example",
    ],
    ...[`${"a".repeat(64)}@b.example`, `${"a".repeat(65)}@b.example`, "a@b.example\u00ad", "'@b.example", ""],
  ];
  const ascii = (text: string): string =>
    JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const goldenOf = (name: string): string => `../../golden/${name}.txt`;

  it("is bought again by nobody who writes it so: golden/normal-forms.txt", async () => {
    const lines = Object.entries({ domain: DOMAINS, email: EMAILS }).flatMap(([kind, texts]) =>
      texts.map((text) => {
        const item = normalizeItem(kind as ItemKind, text);
        return `${kind} ${ascii(text)}: ${item === null ? "none" : ascii(item)}`;
      }),
    );
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(goldenOf("normal-forms"));
  });

  it("is looked for under the spellings of golden/spellings.txt by each version", async () => {
    const texts: readonly [ItemKind, string][] = [
      ...[" A.Example\u200b ", "WWW.a.example.", "b\u00fccher.example", "1.2.3.4", " Not a Domain "].map(
        (text): [ItemKind, string] => ["domain", text],
      ),
      ...["a@b.example", " 'A@B.example.' ", "a@b\u00fccher.example.", "\u00ab a@b.example\u00bb"].map(
        (text): [ItemKind, string] => ["email", text],
      ),
      ...[
        "a@xn--bcher-kva.example",
        "a@b.example\u3002",
        " No Address ",
        "a@b",
        "u\u0308@B.example\u200b",
      ].map((text): [ItemKind, string] => ["email", text]),
    ];
    const lines = texts.flatMap(([kind, text]) =>
      [0, 1, 2, 3].map((version) => {
        const found = spellingsOf({ kind, text, item: normalizeItem(kind, text) }, version);
        return `${kind} ${ascii(text)} in version ${version}: ${found.map(ascii).join(" ")}`;
      }),
    );
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(goldenOf("spellings"));
  });
});

it.each([
  ["a.example", ["a.example"]],
  ["a.example,b.example", ["a.example", "b.example"]],
  ["\r\na.example\r\n\n b.example ,\t,", ["a.example", " b.example "]],
  [" ", []],
])("entriesOf() keeps of %j each entry as it was written: %j", (text, texts) => {
  const entries = entriesOf("domain", text);
  expect(entries.map((entry) => entry.text)).toEqual(texts);
  expect(entries.map((entry) => entry.item)).toEqual(texts.map((one) => one.trim()));
  expect(new Set(entries.map(({ kind }) => kind)).size).toBe(Math.min(1, texts.length));
});
