import { expect, it } from "vitest";
import { RowNotes } from "../../../src/api/row-notes.ts";
import { NO_FACTS } from "../../../src/streams/event.ts";

it("are the facts of a batch since the last look, each counted in rows, names as text", () => {
  const notes = new RowNotes();
  expect(notes.take()).toBeUndefined();
  for (const value of [7, "later values decide nothing", null])
    notes.addNewField("Gr\xc3\xb6\xc3\x9fe", value);
  notes.addNewField("text", "x");
  for (let nth = 0; nth < 3; nth++) notes.addContradiction("n\xc3\xbcr");
  for (let nth = 0; nth < 2; nth++) notes.addWithoutKey();
  for (let nth = 0; nth < 4; nth++) notes.addReplaced();
  const facts = notes.take();
  expect(facts).toEqual({
    ...NO_FACTS,
    newFields: new Map([
      ["Größe", { rows: 3, schema: { type: ["null", "number"] } }],
      ["text", { rows: 1, schema: { type: ["null", "string"] } }],
    ]),
    contradictions: new Map([["nür", 3]]),
    ...{ withoutKey: 2, replaced: 4 },
  });
  expect(notes.take()).toBeUndefined();
  notes.addWithoutKey();
  expect(notes.take()).toEqual({ ...NO_FACTS, withoutKey: 1 });
});

it("name at most a thousand new fields of a batch, and go on counting those", () => {
  const notes = new RowNotes();
  for (const round of [1, 2]) for (let nth = 0; nth < 1_002; nth++) notes.addNewField(`f${nth}`, round);
  const { newFields } = notes.take() ?? NO_FACTS;
  expect([newFields.size, newFields.get("f999")?.rows, newFields.has("f1000")]).toEqual([1_000, 2, false]);
});
