import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { secretMask } from "../../../src/protocol/mask.ts";

const KEY = "ci/live+_0a1b2c3d_0123456789abcdef0123456789abcdef";
const mask = secretMask([KEY, "short"]);

describe("secretMask()", () => {
  it.each([
    ["raw", KEY],
    ["URL-encoded", encodeURIComponent(KEY)],
    ["base64", Buffer.from(KEY).toString("base64").replace(/=+$/, "")],
    ["base64url", Buffer.from(KEY).toString("base64url")],
    ["the long segment", "0123456789abcdef0123456789abcdef"],
    ["in upper case", KEY.toUpperCase()],
    ["the long segment in upper case", "0123456789ABCDEF0123456789ABCDEF"],
  ])("masks a key %s", (_, form) => {
    expect(mask(`<${form}> and <${form}>`)).toBe("<***> and <***>");
  });

  it("masks a secret with quotes, backslashes and accents in JSON", () => {
    const odd = 'pä"ss\\wörd';
    expect(secretMask([odd])(JSON.stringify({ a: odd }))).toBe('{"a":"***"}');
    expect(secretMask([odd])('{"a":"p\\u00e4\\"ss\\\\w\\u00f6rd"}')).toBe('{"a":"***"}');
  });

  it("masks a secret of every sign that there is", () => {
    const signs = Array.from({ length: 0x9f }, (_, code) => String.fromCharCode(0x21 + code));
    for (const sign of signs) {
      const secret = `left-${sign}right${sign}`;
      expect(secretMask([secret])(`<${secret}>`), sign).toBe("<***>");
    }
  });

  it("masks any secret in each of its forms", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6, unit: "grapheme" }), (secret) => {
        // Words of the protocols, which stay as they are, come up by chance.
        fc.pre(secretMask([secret])(secret) === "***");
        const forms = [encodeURIComponent(secret), Buffer.from(secret).toString("base64url")];
        for (const form of [...forms, JSON.stringify(secret).slice(1, -1)])
          expect(secretMask([secret])(`<${form}>`)).toBe("<***>");
      }),
      { numRuns: 40 },
    );
  });

  it("leaves the words of the protocols, though a key is one of them", () => {
    const words = ["people", "discoveredAt", "PEOPLE", "onnection", "stream_status"];
    const message = `{"type":"CONNECTION_STATUS","stream":"people","discoveredAt":1,"stream_status":"PEOPLE"}`;
    expect(secretMask(words)(message)).toBe(message);
  });

  it("hides six characters and more, and letters alone from sixteen on", () => {
    const shown = ["a1b2c3", "a1b2c", "abcdefghijklmnop", "abcdefghijklmno"].map((secret) =>
      secretMask([secret])(`x${secret}x`),
    );
    expect(shown).toEqual(["x***x", "xa1b2cx", "x***x", "xabcdefghijklmnox"]);
  });

  const LONGEST = ["aB".repeat(500), `cD${"é中".repeat(499)}`, "gH".repeat(1_000)];
  const URLS = "~~~???>>>\u00ff\u00ff\u00fe";

  it.each<[string, string[], string, string]>([
    ["the longest that a config may hold", LONGEST, LONGEST.join(" "), "*** *** ***"],
    ["the longer of two that begin alike", ["abcdef", "abcdef-1"], "abcdef-1", "***"],
    ["one that no URL can hold", ["secret\ud800x"], "a secret\ud800x", "a ***"],
    ["base64 of a URL", [URLS], `<${Buffer.from(URLS).toString("base64url")}>`, "<***>"],
  ])("masks %s", (_, secrets, text, masked) => expect(secretMask(secrets)(text)).toBe(masked));
});
