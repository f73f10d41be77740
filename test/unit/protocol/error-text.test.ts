import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import { causeChain, framesOf, userMessage } from "../../../src/protocol/error-text.ts";

const coded = (error: Error, code: unknown): Error => Object.assign(error, { code });

describe("userMessage()", () => {
  it("is the message of an expected error, and says of any other only what it is", () => {
    expect(userMessage(new ConfigError("Cannot do it\u0007"))).toBe("Cannot do it\\u0007");
    const bug = (name: string): string =>
      `Cannot continue: this is a bug of source-contact-intelligence, please report it (${name})`;
    expect([new TypeError("ada@example.org"), "ada", 7, null].map(userMessage)).toEqual(
      ["TypeError", "string", "number", "object"].map(bug),
    );
  });
});

describe("causeChain()", () => {
  it.each<[string, unknown]>([
    ["Error: a", new Error("a")],
    ["TypeError ENOENT: a", coded(new TypeError("a"), "ENOENT")],
    ["ConfigError: a; caused by Error: b", new ConfigError("a", { cause: new Error("b") })],
    // JSON.parse quotes what it could not parse.
    ["SyntaxError", coded(new SyntaxError("ada@example.org"), "X")],
    ["Error: a; caused by string", new Error("a", { cause: "ada@example.org" })],
    ["Error: a; caused by object", new Error("a", { cause: null })],
    ["AggregateError: all; caused by Error: a", new AggregateError([new Error("a"), new Error("b")], "all")],
    ["Error: a\\u0007", new Error("a\u0007")],
  ])("says %s", (text, error) => expect(causeChain(error)).toBe(text));
});

describe("framesOf()", () => {
  it("names the places of an unexpected error, and nothing of its message", () => {
    const error = new TypeError("ada\n    at home\nat once");
    const [name, ...frames] = (framesOf(error) ?? "").split("\n");
    expect(name).toBe("TypeError");
    expect(frames.length).toBeGreaterThan(1);
    expect(frames.filter((frame) => !/^\s+at /.test(frame))).toEqual([]);
    expect(frames.join("\n")).not.toContain("once");
    expect(frames.join("\n")).toContain("error-text.test.ts");
    expect(framesOf(Object.assign(new Error("x"), { stack: undefined }))).toBe("Error");
    expect([new ConfigError("x"), "x", undefined].map(framesOf)).toEqual([undefined, undefined, undefined]);
  });
});
