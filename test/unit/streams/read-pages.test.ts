import { expect, it } from "vitest";
import { BodyError, DataError, UnmadeError } from "../../../src/errors.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import { readPages } from "../../../src/streams/read-pages.ts";
import { SeenRows } from "../../../src/streams/seen-rows.ts";
import type { Row } from "../../../src/streams/stream-api.ts";
import { closedWindow, type Window } from "../../../src/streams/window.ts";
import type { RunRules } from "../../../src/streams/window-result.ts";
import type { Day } from "../../../src/time.ts";
import { apiWith, drain, rulesWith } from "../../support/run-rules.ts";

const DAY = "2026-03-02" as Day;
const CLOSED = closedWindow(DAY, DAY);
const DAYS = closedWindow(DAY, "2026-03-05" as Day);
const OPEN: Window = { kind: "open", from: "2026-03-19" as Day, undated: false };
const ALL: Window = { kind: "all" };
const NOW = Date.parse("2026-03-20T10:00:00Z");

/** How many rows a page holds of ten; or how it cannot be had; or that it is the one before it, or the first, once more. */
type PageOf = number | "no JSON" | "no answer" | "again" | "the first";

type Situation = {
  readonly window?: Window;
  /** The page with each number; those after the last are empty. */
  readonly pages: readonly PageOf[];
  /** What the service counts, one after the other, and then the last for ever. Empty: it does not count. */
  readonly counts: readonly number[];
  readonly total?: number;
  readonly clears?: "again";
  readonly rules?: Partial<RunRules>;
};

function rowsOn(pages: readonly PageOf[], number: number, window: Window): Row[] {
  const page = pages[number - 1] ?? 0;
  if (page === "the first") return rowsOn(pages, 1, window);
  if (page === "again") return rowsOn(pages, number - 1, window);
  const day = "from" in window ? window.from : DAY;
  return Array.from({ length: Number(page) }, (_, nth) => {
    const id = `${number}-${nth}`;
    return { raw: JSON.stringify({ id }) as RawLine, key: JSON.stringify(id), cursor: `${day}T10:00:00Z` };
  });
}

/** The pages that each walk asks for, how many rows come, and what becomes of the window. `c`: a count, `w2`: the second wait. */
async function told({ window = CLOSED, pages, counts, total, clears, rules }: Situation): Promise<string> {
  const asked: string[] = [];
  const left = [...counts];
  const next = (): number => (left.length > 1 ? left.shift() : left[0]) ?? 0;
  const known = counts.length > 0;
  const counted = (rows: number) => ({ rows, undated: 0, known, asked: NOW, answered: NOW });
  const api = apiWith({
    count: async () => {
      asked.push("c");
      return counted(next());
    },
    backOff: async (failures) => void asked.push(`w${failures}`),
    page: async (_window, number) => {
      asked.push(String(number));
      const page = pages[number - 1];
      if (page === "no JSON") throw new BodyError("the page is no JSON");
      if (page === "no answer") throw new UnmadeError("the page was not answered");
      return { rows: rowsOn(pages, number, window), size: 10, total: total ?? null };
    },
  });
  const given = rulesWith({ api, ...rules });
  const reading = readPages(window, clears ?? null, given, new SeenRows(), counted(next()));
  const { lines, result } = await drain(reading).catch((error: unknown) => {
    if (!(error instanceof DataError)) throw error;
    return { lines: [], result: { kind: "failed", cause: error, numbers: "thrown" } as const };
  });
  const why =
    "cause" in result && result.cause instanceof Error
      ? `: ${result.cause.message.replace(/^.* complete by its pages: |\. Tell .*$/g, "")}`
      : "";
  const numbers = "numbers" in result && result.numbers !== undefined ? ` (${result.numbers})` : "";
  const walks = asked.join(" ").split(/ (?=w\d)/);
  const bare = walks.map((walk) => walk.replace(/^w\d ?/, "")).filter((walk) => walk !== "");
  const isSame = bare.every((walk) => walk === bare[0]);
  const all = isSame && bare.length > 1 ? [`${bare[0]}, ${bare.length} times`] : walks;
  return `${all.join(" ")}; ${lines.length} rows; ${result.kind}${why}${numbers}`;
}

const unproven = { verifyCounts: false };

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "full pages and a last one": { pages: [10, 10, 5], counts: [25] },
  "one short page": { pages: [4], counts: [4] },
  "no row, where none was counted": { pages: [], counts: [0] },
  "more pages than were counted": { pages: [10, 10, 5], counts: [12, 25] },
  "more than twice as many pages as were counted": { pages: Array(8).fill(10), counts: [20] },
  "more than twice as many pages as were counted, unproven": {
    pages: Array(8).fill(10),
    counts: [20],
    rules: unproven,
  },
  "more pages than were counted, of which the second is no JSON": {
    pages: [10, 10, 10, "no JSON"],
    counts: [20],
  },
  "pages of a service that does not count": { pages: Array(8).fill(10), counts: [], rules: unproven },
  "pages of a service that does not count, which begin again": {
    ...{ pages: [10, 10, 7, "the first", 9, 8], counts: [], rules: unproven },
  },
  "pages that begin again": { pages: [10, 10, 7, "the first", 9, 8], counts: [27] },
  "pages that are the last one again, for ever": { pages: [10, 5, ...Array(9).fill("again")], counts: [15] },
  "more rows than either of two counts": { pages: [10, 10, 5], counts: [12, 15, 12, 15] },
  "fewer pages than were counted": { pages: [10, 5], counts: [45] },
  "fewer rows, as the next count says": { pages: [10, 5], counts: [20, 15] },
  "fewer rows of a range that drained before": { pages: [10, 5], counts: [20, 15], clears: "again" },
  "fewer rows than the next count": { pages: [10, 5], counts: [20, 18] },
  "a short page in the middle": { pages: [10, 6, 4], counts: [20] },
  "a short page in the middle, unproven": { pages: [10, 6, 9], counts: [99], rules: unproven },
  "three empty pages in a row, unproven": { pages: [10, 0, 0, 0, 9], counts: [59], rules: unproven },
  "two empty pages in a row, unproven": { pages: [10, 10, 10, 0, 0, 9], counts: [60], rules: unproven },
  "a page that is no JSON": { pages: [10, "no JSON", 5], counts: [25] },
  "three of them": { pages: [10, "no JSON", "no JSON", "no JSON", 10, 5], counts: [55] },
  "four of them": { pages: [10, 10, "no JSON", "no JSON", "no JSON", "no JSON", 5], counts: [65] },
  "pages that are not answered from the fourth on": {
    pages: [10, 10, 10, ...Array(30).fill("no answer")],
    counts: [99],
  },
  "no answer at all": { pages: Array(9).fill("no answer"), counts: [40] },
  "a page that repeats its neighbour": { pages: [10, 10, "again", 5], counts: [35] },
  "several days that no walk proves": { window: DAYS, pages: [10, 6, 9], counts: [99] },
  "today, in full pages": { window: OPEN, pages: [10, 10, 5], counts: [25] },
  "today, with fewer rows": { window: OPEN, pages: [10, 5], counts: [25] },
  "today, with a short page in the middle": { window: OPEN, pages: [10, 6, 4], counts: [20] },
  "today, without an end": { window: OPEN, pages: Array(9).fill(10), counts: [20] },
  "today, of a service that does not count": {
    ...{ window: OPEN, pages: Array(9).fill(10), counts: [], rules: unproven },
  },
  "today, in pages that begin again, of a service that does not count": {
    ...{ window: OPEN, pages: [10, 10, "the first", 9, 8], counts: [], rules: unproven },
  },
  "today, with pages that are no JSON": {
    window: OPEN,
    pages: [10, "no JSON", "no JSON", "no JSON", "no JSON", 5],
    counts: [55],
  },
  everything: { window: ALL, pages: [10, 10, 5], counts: [0], total: 25 },
  "everything, at once on each page": { window: ALL, pages: [7, "again"], counts: [0], total: 7 },
  "everything, with fewer rows": { window: ALL, pages: [10, 10, 5], counts: [0], total: 28 },
  "everything, without a total": { window: ALL, pages: [10, 2], counts: [0] },
  "everything, with a page that is no JSON": {
    window: ALL,
    pages: [10, "no JSON", 5],
    counts: [0],
    total: 25,
  },
};

it("walks over the pages of a list as these lines say", async () => {
  const lines: string[] = [];
  for (const [name, situation] of Object.entries(SITUATIONS))
    lines.push(`${name}: ${await told(situation)}\n`);
  await expect(lines.join("")).toMatchFileSnapshot("../../golden/page-walks.txt");
});
