import { describe, expect, it } from "vitest";
import { withoutEchoes } from "../../../src/jobs/echoes.ts";

const hide = (text: string): string => `<${text.length}>`;
const EMAIL = "ann+b@x.example";
const HIDDEN = `<${EMAIL.length}>`;

const inResponse = (response: unknown): unknown =>
  withoutEchoes({ email: EMAIL, response }, "email", hide)["response"];

describe("withoutEchoes()", () => {
  it.each([
    [EMAIL, HIDDEN],
    ["ANN+b@X.Example", HIDDEN],
    [{ input: { email: EMAIL, list: [[EMAIL]] } }, { input: { email: HIDDEN, list: [[HIDDEN]] } }],
    [{ [EMAIL]: true }, { [HIDDEN]: true }],
    [`mailto:${EMAIL}, <${EMAIL}>.`, `mailto:${HIDDEN}, <${HIDDEN}>.`],
    [`https://x/?e=ann%2bb%40x.example&n=1`, `https://x/?e=${HIDDEN}&n=1`],
    [`https://x/?u=x%3Dann%2Bb%40x%2Eexample%26`, `https://x/?u=x%3D${HIDDEN}%26`],
    [JSON.stringify({ a: `\n${EMAIL}` }), `{"a":"\\n${HIDDEN}"}`],
    ["ann+b\\u0040x.example", HIDDEN],
    ["a_ann+b@x.example-1.json", `a_${HIDDEN}-1.json`],
    ["joann+b@x.example, ann+b@x.examples, Ann B", "joann+b@x.example, ann+b@x.examples, Ann B"],
    [
      [1, null, true],
      [1, null, true],
    ],
  ])("hides an e-mail in %j", (response, hidden) => {
    expect(inResponse(response)).toEqual(hidden);
  });

  it.each([
    ["bücher.example", "https://www.xn--bcher-kva.example/ BÜCHER.EXAMPLE b%C3%BCcher.example"],
    ["xn--bcher-kva.example", "https://www.xn--bcher-kva.example/ BÜCHER.EXAMPLE b%C3%BCcher.example"],
  ])("hides a domain in both of its spellings: %s", (domain, text) => {
    const record = { domain, contacts: [{ email: `p@${domain}`, company_domain: domain }], text };
    expect(withoutEchoes(record, "domain", () => "<it>")).toEqual({
      domain,
      contacts: [{ email: "p@<it>", company_domain: "<it>" }],
      text: "https://www.<it>/ <it> <it>",
    });
  });

  it.each(["ann@bücher.example", "ann@xn--bcher-kva.example"])(
    "hides an e-mail in both spellings of its domain: %s",
    (email) => {
      const response = "ann@xn--bcher-kva.example Ann@BÜCHER.example ann@b%C3%BCcher.example";
      expect(withoutEchoes({ email, response }, "email", () => "<it>")).toEqual({
        email,
        response: "<it> <it> <it>",
      });
    },
  );

  it("leaves a record alone whose item is no text", () => {
    for (const email of [null, "", 7]) {
      const record = { email, response: { input: "a@x.example" } };
      expect(withoutEchoes(record, "email", hide)).toEqual(record);
    }
  });
});
