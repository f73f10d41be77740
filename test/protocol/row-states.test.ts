import { describe, expect, it } from "vitest";
import { RowStates } from "../../src/protocol/row-states.ts";
import { open, records } from "../support/events.ts";

const MIB = 1024 * 1024;

/** In which of so many windows, of a row each, a state is said. */
function saidIn(states: RowStates, windows: number, size: number): readonly number[] {
  states.note(open("people"));
  states.note({ kind: "estimate", stream: "people", rows: windows });
  return Array.from({ length: windows }, (_, nth) => nth + 1).filter(() => {
    states.note(records("people", {}));
    const isSaid = states.lets(size);
    if (isSaid) states.wrote(size);
    return isSaid;
  });
}

describe("RowStates", () => {
  it("lets every small state", () => {
    expect(saidIn(new RowStates(1), 300, 1_000)).toHaveLength(300);
  });

  it("spreads large states over the rows", () => {
    expect(saidIn(new RowStates(1), 100, 16 * MIB)).toEqual([20, 30, 40, 49, 59, 69, 79, 88, 98]);
    expect(saidIn(new RowStates(3), 100, 16 * MIB)).toEqual([59, 88]);
  });

  it("lets each stream of rows have its part, and the first state whose size nobody knows", () => {
    const states = new RowStates(2);
    expect(saidIn(states, 100, 16 * MIB)).toHaveLength(4);
    expect(saidIn(states, 100, 16 * MIB)).toHaveLength(4);
    states.note(open("sources"));
    expect(states.lets(0)).toBe(true);
  });

  it("spends the part at once where nobody knows how many rows there are", () => {
    const states = new RowStates(1);
    states.note(open("people"));
    expect(states.lets(16 * MIB)).toBe(true);
  });
});
