import { expect, it } from "vitest";
import { jsonl } from "../../../src/protocol/jsonl.ts";
import { checkpoint, close, END, open, rawLine, records } from "../../support/events.ts";

it("jsonl() says the records of its stream and nothing else", () => {
  const say = jsonl("people");
  const events = [open("people"), records("people", { a: "é" }, { b: 1 }), records("sources", { c: 1 })];
  const text = [...events, checkpoint("people", {}), close("people"), END].map(say).join("");
  expect(text).toBe(rawLine('{"a":"é"}\n{"b":1}\n'));
});
