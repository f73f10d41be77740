import { describe, expect, it } from "vitest";
import { incremental } from "../../../src/catalog/airbyte.ts";
import { stateOf } from "../../../src/state/resume.ts";

describe("stateOf()", () => {
  const named = (key: string) => {
    const [name = "", namespace] = key.split("/").toReversed();
    return namespace === undefined ? incremental(name) : { ...incremental(name), namespace };
  };
  it.each([
    ["people", ["people"], ["people"], "people"],
    ["people", ["people"], ["crm/people"], "crm/people"],
    ["crm/people", ["crm/people"], ["companies", "people"], "people"],
    ["crm/people", ["crm/people"], ["people", "crm/people"], "crm/people"],
    ["people", ["people"], ["crm/people", "erp/people"], undefined],
    ["crm/people", ["crm/people", "people"], ["people"], undefined],
    ["people", ["people"], ["companies"], undefined],
  ])("for %s, with the streams %j and the saved states %j, is that of %s", (key, asked, saved, found) => {
    const states = new Map(saved.map((name) => [name, name]));
    const all = asked.map((name) => ({ configured: named(name) }));
    expect(stateOf(named(key), all, states)).toBe(found);
  });
});
