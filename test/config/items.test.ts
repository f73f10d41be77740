import { describe, expect, it } from "vitest";
import { entriesOf, NORMALIZATION, normalizeItem, spellingsOf } from "../../src/config/items.ts";

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
