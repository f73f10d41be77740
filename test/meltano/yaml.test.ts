import { expect, it } from "vitest";
import { toYaml } from "../../scripts/yaml.ts";

it("sorts keys at every depth, does not indent lists, and quotes what is more than a word", () => {
  const yaml = toYaml({
    name: "tap-x",
    settings: [
      { name: "a.b", value: false, kind: "boolean" },
      { name: "c", options: [{ value: "true", label: "Yes: always" }], value: 7 },
    ],
    groups: [["a", "b"]],
    empty: "",
    word: "on",
  });
  expect(yaml).toBe(`empty: ""
groups:
- - a
  - b
name: tap-x
settings:
- kind: boolean
  name: a.b
  value: false
- name: c
  options:
  - label: "Yes: always"
    value: "true"
  value: 7
word: "on"
`);
});
