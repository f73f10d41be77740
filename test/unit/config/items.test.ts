import { describe, expect, it } from "vitest";
import { itemsOf, normalizeItem } from "../../../src/config/items.ts";

// Two spellings with the same normal form are one item, and are bought once.

describe("a domain", () => {
  it.each<[domain: string, texts: readonly string[]]>([
    ["example.com", [" Example.COM ", "www.example.com", "www.example.com.", '"example.com"']],
    ["example.com", ["exam\u200bple.com", "‘example.com’", "example.com\u3002", "\uff37ww.example.com"]],
    ["www.com", ["www.com", "WWW.com."]],
    ["example.co.uk", ["www.example.co.uk"]],
    ["xn--bcher-kva.example", ["BÜCHER.example", "bu\u0308cher.example", "XN--BCHER-KVA.example"]],
    ["a_b-c.example", ["a_b-c.example", "www.a_b-c.example"]],
  ])("%s is what %j are", (domain, texts) => {
    expect(texts.map((text) => normalizeItem("domain", text))).toEqual(texts.map(() => domain));
    expect(normalizeItem("domain", domain)).toBe(domain);
  });

  it("is no number, address, path or part of a name", () => {
    const others = "localhost 12345 1.2.3.4 www.1.2.3.4 https://example.com/x a..example .".split(" ");
    const signs = [..."@/?:% "].map((sign) => `a${sign}b.example`);
    for (const text of [...others, ...signs, "", `${"a".repeat(64)}.example`])
      expect(normalizeItem("domain", text), text).toBeNull();
  });
});

describe("an e-mail address", () => {
  it.each<[address: string, texts: readonly string[]]>([
    ["a@x.example", [" A@X.example ", "a@x.example.", '"a@x.example"', '"a"@x.example', "«a@x.example»"]],
    ["a@x.example", ["‘a@x.example.’", "'a@x.example'.", "\ufeffa\u200b@x\u200b.example\u3002"]],
    ["a@xn--bcher-kva.example", ["a@bücher.example", "A@BU\u0308CHER.example.", "a@xn--bcher-kva.EXAMPLE"]],
    ["a@www.x.example", ["a@WWW.x.example"]],
    ["o'neil@x.example", ["O'Neil@x.example", "'o'neil@x.example'"]],
    ["amélie@example.com", [" Ame\u0301lie@Example.com "]],
    ["a+b.c@x.example", ["A+B.c@x.example"]],
  ])("%s is what %j are", (address, texts) => {
    expect(texts.map((text) => normalizeItem("email", text))).toEqual(texts.map(() => address));
    expect(normalizeItem("email", address)).toBe(address);
  });

  it("is refused if it is a list, a name in brackets, or damaged", () => {
    const others = "a a@b a@@b.example a@1.2.3.4 @x.example a@x..example a@.example a@x.".split(" ");
    const lost = ["m\ufffdller@x.example", "\ud800@x.example", "a@x.example,b@x.example"];
    const signs = [..."(),:;<>[]\\ "].flatMap((sign) => [`a${sign}a@x.example`, `a@x${sign}x.example`]);
    for (const text of [...others, ...lost, ...signs, `${"a".repeat(65)}@x.example`])
      expect(normalizeItem("email", text), text).toBeNull();
  });
});

it("a domain or an address has at most 254 characters", () => {
  const domain = (length: number): string => `${`${"a".repeat(59)}.`.repeat(4)}${"b".repeat(length - 240)}`;
  expect([254, 255].map((length) => normalizeItem("domain", domain(length)) !== null)).toEqual([true, false]);
  const email = (length: number): string => `a@${domain(length - 2)}`;
  expect([254, 255].map((length) => normalizeItem("email", email(length)) !== null)).toEqual([true, false]);
});

it("a list is cut at commas and line breaks", () => {
  const items = itemsOf("domain", "\r\na.example\r\n\n b.example ,\t,no domain");
  expect(items).toEqual(["a.example", "b.example", null]);
});
