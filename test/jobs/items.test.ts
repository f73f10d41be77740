import { describe, expect, it } from "vitest";
import { entriesOf, normalizeItem } from "../../src/jobs/items.ts";

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

  it.each(["localhost", "12345", "1.2.3.4", "a b.example", "https://example.com/x", "a@b.example", "", "."])(
    "takes %j for no domain",
    (text) => {
      expect(normalizeItem("domain", text)).toBeNull();
    },
  );

  it("takes addresses in one form, and nothing else", () => {
    expect(normalizeItem("email", " Ame\u0301lie@Example.com ")).toBe("am\u00e9lie@example.com");
    for (const text of ["a", "a@b", "a b@c.example", "a@@b.example"])
      expect(normalizeItem("email", text)).toBeNull();
  });

  it("is idempotent", () => {
    for (const text of ["WWW.Example.com.", "BÜCHER.example"]) {
      const once = normalizeItem("domain", text);
      expect(normalizeItem("domain", once ?? "")).toBe(once);
    }
  });
});

describe("entriesOf()", () => {
  it("takes commas and line breaks for a list", () => {
    const items = entriesOf("domain", "a.example, b.example\nc.example,,").map(({ item }) => item);
    expect(items).toEqual(["a.example", "b.example", "c.example"]);
  });
});
