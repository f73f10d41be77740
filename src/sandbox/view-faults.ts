import type { FaultSpec } from "./fault.ts";
import type { View } from "./view.ts";

const COUNT = { label: "K", type: "number" } as const;

/** Faults in what the service believes: they last, unless times= says otherwise. */
export const VIEW_FAULTS: readonly (readonly [string, FaultSpec])[] = [
  [
    "omit",
    {
      kind: "view",
      description: "streams leave out the same members every time; lists=too: lists as well",
      argument: COUNT,
      options: ["lists"],
      alter: (view, { value, options }) => ({
        ...view,
        omitted: value,
        omittedFromLists: options.get("lists") === "too",
      }),
    },
  ],
  [
    "duplicate",
    {
      kind: "view",
      description: "streams repeat so many members",
      argument: COUNT,
      alter: (view, { value }) => ({ ...view, repeated: value }),
    },
  ],
  [
    "duplicate-omit",
    {
      kind: "view",
      description: "streams repeat so many members and leave out as many others",
      argument: COUNT,
      alter: (view, { value }) => ({ ...view, repeated: value, omitted: value }),
    },
  ],
  [
    "count",
    {
      kind: "view",
      description: "totals are off by this much",
      argument: { label: "DELTA", type: "number" },
      alter: (view, { value }) => total(view, (count) => Math.max(0, count + value)),
    },
  ],
  [
    "cap",
    {
      kind: "view",
      description: "totals never exceed this",
      argument: { label: "N", type: "number" },
      alter: (view, { value }) => total(view, (count) => Math.min(count, value)),
    },
  ],
  ["null-total", { kind: "view", description: "totals are null", alter: (view) => total(view, () => null) }],
  [
    "page-repeats",
    { kind: "view", description: "every page is page 1", alter: (view) => ({ ...view, page: () => 1 }) },
  ],
  [
    "short-page",
    {
      kind: "view",
      description: "the page in the middle lacks half of its rows",
      alter: (view) => ({ ...view, shortPage: true }),
    },
  ],
  [
    "filters-ignored",
    {
      kind: "view",
      description: "filters have no effect",
      alter: (view) => ({ ...view, ignoresFilters: true }),
    },
  ],
];

/** The view with one more bend in its totals; a null stays null. */
function total(view: View, bend: (count: number) => number | null): View {
  return {
    ...view,
    total: (count) => {
      const said = view.total(count);
      return said === null ? null : bend(said);
    },
  };
}
