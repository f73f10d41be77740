import { type Distortion, spread } from "./distortion.ts";
import type { FaultTable } from "./fault.ts";

const COUNT = { label: "K", type: "number" } as const;

/** JSON texts of a date-time `YYYY-MM-DDTHH:MM:SS.mmmZ`. */
const SPELLINGS: Readonly<Record<string, (date: string) => string>> = {
  "short-offset": (date) => `"${date.replace("Z", "+00")}"`,
  offset: (date) => `"${new Date(Date.parse(date) + 19_800_000).toISOString().replace("Z", "+05:30")}"`,
  comma: (date) => `"${date.replace(".", ",")}"`,
  space: (date) => `"${date.replace("T", " ")}"`,
  "lower-case": (date) => `"${date.toLowerCase()}"`,
  utc: (date) => `"${date.replace("T", " ").replace("Z", " UTC")}"`,
  "utc-brackets": (date) => `"${date}[Etc/UTC]"`,
  "epoch-ms": (date) => String(Date.parse(date)),
  "epoch-seconds": (date) => String(Date.parse(date) / 1000),
  unreadable: (date) => `"on ${date.slice(8, 10)} in ${date.slice(0, 7)}"`,
};

/** Faults in what the service believes: they last, unless times= says otherwise. */
export const DISTORTION_FAULTS: FaultTable = {
  omit: {
    kind: "distortion",
    description: "streams leave out the same members every time; lists=too: lists as well",
    argument: COUNT,
    options: ["lists"],
    alter: (distortion, { value, options }) => ({
      ...distortion,
      omitted: value,
      omittedFromLists: options.get("lists") === "too",
    }),
  },
  hide: {
    kind: "distortion",
    description:
      "K members and the last source are nowhere, not even in totals, as before a source is granted",
    argument: COUNT,
    alter: (distortion, { value }) => ({
      ...distortion,
      ...{ omitted: value, omittedFromLists: true, hides: true },
    }),
  },
  beginning: {
    kind: "distortion",
    description: "a filter from 0001-01-01 or 1970-01-01 on is taken for none, or refused",
    argument: { label: "HOW", type: "text", choices: ["ignored", "refused"] },
    alter: (distortion, { text }) => ({ ...distortion, beginning: text }),
  },
  duplicate: {
    kind: "distortion",
    description: "streams repeat K members",
    argument: COUNT,
    alter: (distortion, { value }) => ({ ...distortion, repeated: value }),
  },
  "duplicate-omit": {
    kind: "distortion",
    description: "streams repeat K members and leave out K others",
    argument: COUNT,
    alter: (distortion, { value }) => ({ ...distortion, repeated: value, omitted: value }),
  },
  count: {
    kind: "distortion",
    description: "totals are off by this much",
    argument: { label: "DELTA", type: "number" },
    alter: (distortion, { value }) => total(distortion, (count) => Math.max(0, count + value)),
  },
  cap: {
    kind: "distortion",
    description: "totals never exceed this",
    argument: { label: "N", type: "number" },
    alter: (distortion, { value }) => total(distortion, (count) => Math.min(count, value)),
  },
  "null-total": {
    kind: "distortion",
    description: "totals are null",
    alter: (distortion) => total(distortion, () => null),
  },
  "page-repeats": {
    kind: "distortion",
    description: "every page is page 1",
    alter: (distortion) => ({ ...distortion, page: () => 1 }),
  },
  "short-page": {
    kind: "distortion",
    description: "the page in the middle lacks half of its rows",
    alter: (distortion) => ({ ...distortion, shortPage: true }),
  },
  "filters-ignored": {
    kind: "distortion",
    description: "filters have no effect",
    alter: (distortion) => ({ ...distortion, ignoresFilters: true }),
  },
  "list-end": {
    kind: "distortion",
    description: "lists show nothing after ROWS rows; totals and streams are right",
    argument: { label: "ROWS", type: "number" },
    alter: (distortion, { value }) => ({ ...distortion, listEnd: value }),
  },
  "list-depth": {
    kind: "distortion",
    description: "lists answer 500 beyond ROWS rows, as search indexes do beyond 10,000",
    argument: { label: "ROWS", type: "number" },
    alter: (distortion, { value }) => ({ ...distortion, listDepth: value }),
  },
  lag: {
    kind: "distortion",
    description: "lists and exports come from a replica this far behind; totals are of now",
    argument: { label: "SECONDS", type: "number" },
    alter: (distortion, { value }) => ({ ...distortion, lag: value }),
  },
  "random-order": {
    kind: "distortion",
    description: "lists order rows whose dates share a span of SECONDS at random, again for each request",
    argument: { label: "SECONDS", type: "number", fallback: "86400" },
    alter: (distortion, { value, nth }) => ({ ...distortion, shuffleMs: value * 1000, shuffle: nth }),
  },
  keyless: {
    kind: "distortion",
    description: "the same members have no key, in lists and in streams",
    argument: COUNT,
    alter: (distortion, { value }) =>
      respell(distortion, (text, index, size) =>
        spread(size, value, 0.4).has(index) ? text.replace(/^\{"(?:id|domain)":"[^"]*",/, "{") : text,
      ),
  },
  twins: {
    kind: "distortion",
    description:
      "K pairs of members share their key, as two companies of one domain, in lists and in streams",
    argument: COUNT,
    alter: (distortion, { value }) =>
      respell(distortion, (text, index, size) => {
        const place = [...spread(size, 2 * value, 0.5)].indexOf(index);
        if (place < 0) return text;
        return text.replace(/(?<=^\{"(?:id|domain)":")[^"]*/, `pair-${Math.floor(place / 2)}.example`);
      }),
  },
  dates: {
    kind: "distortion",
    description: "dates have another form, in lists and in streams",
    argument: { label: "SPELLING", type: "text", choices: Object.keys(SPELLINGS) },
    alter: (distortion, { text: spelling }) => {
      const spell = SPELLINGS[spelling] ?? JSON.stringify;
      return respell(distortion, (text) =>
        text.replace(/(?<="discoveredAt":)"([^"]+)"/, (_, date: string) => spell(date)),
      );
    },
  },
  "clock-behind": {
    kind: "distortion",
    description: "the Date header is SECONDS behind the clock that dates the rows; negative: ahead of it",
    argument: { label: "SECONDS", type: "number" },
    alter: (distortion, { value }) => ({ ...distortion, dateMs: -value * 1000 }),
  },
};

/** The distortion with one more change of its totals; a null stays null. */
function total(distortion: Distortion, change: (count: number) => number | null): Distortion {
  return {
    ...distortion,
    total: (count) => {
      const said = distortion.total(count);
      return said === null ? null : change(said);
    },
  };
}

/** The distortion with one more change of the form of rows. */
function respell(distortion: Distortion, change: Distortion["row"]): Distortion {
  const row: Distortion["row"] = (text, index, size) =>
    change(distortion.row(text, index, size), index, size);
  return { ...distortion, row };
}
