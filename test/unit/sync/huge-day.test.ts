import { expect, it, onTestFinished, vi } from "vitest";
import { BodyError } from "../../../src/base/errors.ts";
import type { RawLine } from "../../../src/sync/event.ts";
import { SeenRows } from "../../../src/sync/seen-rows.ts";
import type { Window } from "../../../src/sync/window.ts";
import { day, NOW } from "../../support/people-sync.ts";
import { apiWith, type Ran, runStream } from "../../support/sync-run.ts";

const DAY = day("2026-03-02");
const IDS = Array.from({ length: 180 }, (_, id) => id);

/**
 * Reads a day of 180 people, of whom every other is a user. Its export breaks after 100 rows.
 * @param shows what the nth export of a part shows, and whether it ends
 */
async function read(
  shows: (ids: readonly number[], nth: number) => readonly [readonly number[], boolean],
): Promise<Ran & { parts: string[] }> {
  const parts: string[] = [];
  const idsIn = (window: Window): readonly number[] => {
    const isUser = window.kind === "closed" ? window.isUser : undefined;
    return IDS.filter((id) => isUser === undefined || (id % 2 === 0) === isUser);
  };
  const api = apiWith({
    now: () => NOW,
    backOff: async () => {},
    sources: async () => [],
    rowAt: async () => undefined,
    count: async (window) => {
      return { rows: idsIn(window).length, undated: 0, known: true, asked: NOW, answered: NOW };
    },
    stream: async function* (window) {
      const all = idsIn(window);
      const isPart = all.length < IDS.length;
      if (isPart) parts.push(String((window as { isUser?: boolean }).isUser));
      const [ids, ends] = isPart ? shows(all, parts.length) : [all.slice(0, 100), false];
      const cursor = `${DAY}T12:00:00Z`;
      yield { rows: ids.map((id) => ({ raw: `{"id":${id}}` as RawLine, key: String(id), cursor })) };
      if (!ends) throw new BodyError("The body was cut");
    },
    page: async () => {
      throw new BodyError("The list cannot be asked so deep");
    },
  });
  const ran = await runStream(api, { settings: { startDate: DAY, endDate: DAY, maxWindowRows: 100 } });
  return { ...ran, parts };
}

it("a huge day whose export breaks is read by is_user, and proven as one; a part that breaks is read again alone", async () => {
  const ran = await read((ids, nth) => (nth === 1 ? [ids.slice(0, 20), false] : [ids, true]));
  expect(ran).toMatchObject({ complete: true, parts: ["true", "true", "false"] });
  expect(ran.lines).toHaveLength(180);
});

it("a huge day is not proven by parts of which one shows somebody twice and somebody never", async () => {
  const ran = await read((ids, nth) => [nth % 2 === 1 ? [...ids.slice(1), ids[1] ?? 0] : ids, true]);
  expect(ran).toMatchObject({ complete: false, missing: [DAY] });
});

it.each([
  ["is whole", 0, true],
  ["lacks what the first try showed", 40, false],
])(
  "a part that broke counts once where there are too many rows to remember: the second try %s",
  async (_, from, complete) => {
    const isFull = vi.spyOn(SeenRows.prototype, "isFull", "get").mockReturnValue(true);
    onTestFinished(() => isFull.mockRestore());
    const ran = await read((ids, nth) => {
      if (nth === 1) return [ids.slice(0, 40), false];
      return [ids[0] === 0 ? ids.slice(from) : ids, true];
    });
    expect(ran.complete).toBe(complete);
  },
);
