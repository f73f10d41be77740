import { expect, it } from "vitest";
import { addDays, DAY_MS, type Day, startOf } from "../../../src/base/time.ts";
import type { Coverage } from "../../../src/sync/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/sync/state.ts";
import type { Window } from "../../../src/sync/window.ts";
import { dice } from "../../support/dice.ts";
import {
  type Cut,
  type ModelOptions,
  ModelService,
  type Person,
  peopleOn,
  undatedPeople,
} from "../../support/model-service.ts";
import { type RunOptions, runStream } from "../../support/sync-run.ts";

const TODAY = "2026-03-20" as Day;
const NOON = startOf(TODAY) + DAY_MS / 2;
const HOUR_MS = DAY_MS / 24;
const lastDays = (count: number): Day[] =>
  Array.from({ length: count }, (_, nth) => addDays(TODAY, nth + 1 - count));
const person = (id: string, at: number | null, more: Partial<Person> = {}): Person => ({
  ...{ id, at, user: false },
  ...more,
});
/** Nobody is dated after the first run begins. */
const account = (days: number, perDay: number, undated = 0): Person[] => [
  ...peopleOn(lastDays(days), perDay).filter(({ at }) => (at ?? 0) < NOON - 5_000),
  ...undatedPeople(undated),
];

const onDay = (day: string, many: number): Person[] =>
  peopleOn([day], many).map((one) => ({ ...one, id: `${day} ${one.id}` }));

/** What happens before a run, and how it is made. */
type Step = Pick<RunOptions, "endsAt" | "isFullRefresh" | "stopAfter"> & {
  /** Hours since the run before. */
  readonly hours?: number;
  readonly change?: (service: ModelService, people: Person[]) => void;
};

type Situation = RunOptions & {
  readonly people: Person[];
  readonly sources?: readonly string[];
  readonly service?: Partial<ModelOptions>;
  readonly steps?: readonly Step[];
};

/** What has happened to a service in the course of its situation. */
const switches = new Set<"healed" | "granted">();

const DAILY: readonly Step[] = [{}, { hours: 24 }, { hours: 1 }, { hours: 24 * 9 }];
const arrive =
  (count: number, at?: string) =>
  (service: ModelService, people: Person[]): void => {
    for (let nth = 0; nth < count; nth++)
      people.push(person(`new${people.length}`, at === undefined ? service.now - 9_000 : Date.parse(at)));
  };
const move =
  (count: number, seed = 3) =>
  (service: ModelService, people: Person[]): void => {
    const roll = dice(seed);
    for (let nth = 0; nth < count; nth++) {
      const one = people[roll(people.length)];
      if (one !== undefined) one.at = service.now - 60_000;
    }
  };
/** The first exports fail, as many as are said, or those of the windows that are. */
const cuts =
  (many: number, loud: boolean, isMeant: (window: Window) => boolean = () => true) =>
  (window: Window, nth: number): Cut | undefined =>
    nth < many && isMeant(window) ? { rows: 3, loud } : undefined;
const holds = (day: string) => (window: Window) =>
  window.kind === "closed" && window.from <= day && window.to >= day;

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "a small account, day by day": {
    people: account(60, 2, 3),
    steps: [
      {},
      { hours: 24, change: arrive(3) },
      { hours: 1 },
      { hours: 24, change: move(9) },
      { hours: 24 * 9 },
    ],
  },
  "an account in windows of 40 rows, of which people move": {
    people: account(200, 3, 3),
    settings: { maxWindowRows: 40, numWorkers: 3 },
    steps: [
      {},
      { hours: 24, change: move(30) },
      { hours: 1, change: arrive(50, "2025-11-11T11:11:11Z") },
      { hours: 24 },
    ],
  },
  "days of very different size": {
    people: [
      ...account(900, 1),
      ...onDay("2024-02-29", 90),
      ...onDay("2003-01-01", 30),
      ...onDay("2025-12-31", 70),
    ],
    settings: { maxWindowRows: 50 },
    steps: [{}, { hours: 24 * 3, change: move(200) }, { hours: 24 }, { hours: 24 }],
  },
  "110,000 people": { people: account(220, 500), service: { batch: 5_000, latency: 400 }, steps: DAILY },
  "exports that are cut loudly, twice": {
    people: account(40, 4),
    settings: { maxWindowRows: 30 },
    service: { cut: cuts(2, true) },
  },
  "exports that are cut silently, for ever": {
    people: account(30, 4),
    settings: { maxWindowRows: 30 },
    service: { cut: cuts(Number.POSITIVE_INFINITY, false) },
    steps: [{}, { hours: 24 }],
  },
  "exports that are cut loudly, for ever": {
    people: account(12, 14),
    settings: { maxWindowRows: 30 },
    service: { cut: cuts(Number.POSITIVE_INFINITY, true) },
    steps: [{}, { hours: 24 }],
  },
  "a day that breaks until the fourth run": {
    people: account(40, 4),
    settings: { maxWindowRows: 30 },
    service: {
      cut: (window) =>
        holds("2026-03-02")(window) && !switches.has("healed") ? { rows: 3, loud: true } : undefined,
      breaks: () => !switches.has("healed"),
    },
    steps: [
      {},
      { hours: 24 },
      { hours: 1 },
      { hours: 1, change: () => void switches.add("healed") },
      { hours: 24 },
    ],
  },
  "a day whose rows an export leaves out, and a broken list": {
    people: account(40, 4),
    service: { omits: ({ id }) => id === "p20-1", breaks: (_window, number) => number === 1 },
    steps: DAILY,
  },
  "days that are ignored": {
    people: account(40, 4),
    settings: { maxWindowRows: 30, ignoreMissingDays: ["2026-03-02" as Day] },
    service: { omits: ({ id }) => id === "p21-1" },
  },
  "people without a date, of whom some get one": {
    people: account(9, 2, 30),
    steps: [
      {},
      {
        hours: 24,
        change: (service, people) => {
          for (const one of people.slice(-3)) one.at = service.now - 9_000;
        },
      },
      {
        hours: 24,
        change: (_service, people) => void people.push(person("odd", null), person("odder", null)),
      },
    ],
  },
  "1,200 people without a date": {
    people: account(9, 2, 1_200),
    service: { batch: 100 },
    steps: [
      {},
      { hours: 24, change: (_service, people) => void people.push(person("odd", null)) },
      { hours: 24 },
    ],
  },
  "a list in random order and exports that are cut": {
    people: account(12, 4, 3),
    service: {
      cut: cuts(20, true),
      list: (rows) => rows.map((_row, nth, all) => all[(nth * 7) % all.length] as Person),
    },
    steps: [{}, { hours: 24 }],
  },
  "pages alone, of more rows than are counted": {
    people: account(12, 4),
    service: { cut: cuts(Number.POSITIVE_INFINITY, true), total: (rows) => Math.floor(rows / 3) },
  },
  "pages alone, of a list that begins again": {
    people: account(12, 4),
    service: { cut: cuts(Number.POSITIVE_INFINITY, true), list: (rows) => Array(6).fill(rows).flat() },
  },
  "pages alone, of which some are broken": {
    people: account(30, 4),
    service: { cut: cuts(Number.POSITIVE_INFINITY, true), breaks: (_window, _number, nth) => nth % 3 === 1 },
  },
  "totals that are capped at 50": {
    people: account(40, 4),
    service: { total: (rows) => Math.min(rows, 50) },
    steps: [{}, { hours: 24 }],
  },
  "totals that count too few": {
    people: account(40, 4),
    service: { total: (rows) => Math.max(0, rows - 2) },
  },
  "no totals, and no proofs": {
    people: account(40, 4, 2),
    settings: { verifyCounts: false, maxWindowRows: 30 },
    service: { total: () => null },
    steps: DAILY,
  },
  "a source that is granted later": {
    people: [
      ...account(20, 1).map((one) => ({ ...one, source: "crm" })),
      ...peopleOn(lastDays(15).slice(0, 9), 2).map((one) => ({ ...one, id: `ads${one.id}`, source: "ads" })),
    ],
    sources: ["crm"],
    service: { filter: ({ source }) => source === "crm" || switches.has("granted") },
    steps: [{}, { hours: 24, change: () => void switches.add("granted") }],
  },
  "dates from and to, and a longer lookback": {
    people: account(60, 2, 2),
    settings: { startDate: "2026-02-01" as Day, endDate: "2026-03-25" as Day, lookbackWindowDays: 5 },
    steps: [...DAILY, { hours: 24 }],
  },
  "a run that ends by its time, and one that is killed": {
    people: account(200, 3, 3),
    settings: { maxWindowRows: 40 },
    steps: [
      { endsAt: NOON + 400 },
      { hours: 1, stopAfter: 9 },
      { hours: 1 },
      { hours: 24, isFullRefresh: true },
    ],
  },
  "a state that is ahead of the clock": {
    people: account(40, 2, 1),
    state: {
      ...NEW_STATE,
      discoveredAt: "2026-05-04T00:00:00Z",
      days: [["2026-02-01" as Day, "2026-05-03" as Day, 9]],
    },
    steps: [{}, { hours: 24 }],
  },
  "a stream without an export": {
    people: account(12, 4),
    source: { isExported: false },
    steps: [{}, { hours: 24, change: move(9) }],
  },
  "a stream without dates": {
    people: account(12, 4),
    source: { isDated: false },
    service: { cut: cuts(1, true) },
  },
  "a stream without dates and without a list": {
    people: account(12, 4),
    source: { isDated: false, isListed: false },
    service: { cut: cuts(1, true) },
  },
};

function named(window: Window): string {
  if (window.kind === "all" || window.kind === "undated") return window.kind;
  if (window.kind === "open") return `${window.from}…${window.undated ? " and undated" : ""}`;
  const days = window.from === window.to ? window.from : `${window.from}…${window.to}`;
  return [days, window.isUser, window.source].filter((one) => one !== undefined).join(" ");
}

const spans = (days: Coverage): string =>
  days.map(([from, to, ...rest]) => `${from}…${to} ${rest.map((one) => one ?? "-").join(" ")}`).join(", ");

/** A state as it is saved, with the number of what is only remembered by its digests. Days follow if they have changed. */
function shownState(
  { days = [], witness, undated, ...rest }: DatedState,
  before: Coverage = [],
): readonly string[] {
  const seen = undated && { ...undated, seen: undated.seen?.length };
  const set = Object.entries({ ...rest, undated: seen, witness: witness?.keys.length }).filter(
    ([, value]) => value !== null,
  );
  const isSame = JSON.stringify(days) === JSON.stringify(before);
  return [`  ${JSON.stringify(Object.fromEntries(set))}`, ...(isSame ? [] : [`  ${spans(days)}`])];
}

/** Requests of one kind that follow each other share a line. */
function shownRequests({ asked }: ModelService): readonly string[] {
  const lines: string[] = [];
  for (const { what, window } of asked) {
    const last = lines.at(-1);
    if (last?.startsWith(`  ${what} `) === true) lines[lines.length - 1] = `${last}, ${named(window)}`;
    else lines.push(`  ${what} ${named(window)}`);
  }
  return lines;
}

/** Everything that a service sees of the runs of a situation, and what they leave. */
async function told({
  people,
  sources,
  service: options,
  steps = [{}],
  ...given
}: Situation): Promise<string[]> {
  switches.clear();
  const service = new ModelService({ now: NOON, people, latency: 20, ...options });
  service.sources = sources;
  let { state = null } = given;
  const lines: string[] = [];
  for (const [nth, { hours = 0, change, ...how }] of steps.entries()) {
    service.now += hours * HOUR_MS;
    change?.(service, people);
    if (switches.has("granted")) service.sources = ["ads", "crm"];
    service.asked.length = 0;
    service.notices.length = 0;
    const ran = await runStream(service.api(given.settings?.verifyCounts), { ...given, ...how, state });
    const ended = ran.complete ? "complete" : `incomplete: ${ran.error ?? "-"}`;
    lines.push(`Run ${nth + 1}: ${service.asked.length} requests, ${ran.lines.length} rows, ${ended}`);
    lines.push(...shownRequests(service));
    const logs = [...service.notices, ...ran.events].flatMap((event) =>
      event.kind === "log" ? [event.text] : [],
    );
    lines.push(...logs.map((text) => `  said: ${text}`));
    if (ran.state !== null) lines.push(...shownState(ran.state, state?.days));
    state = ran.state;
  }
  return lines;
}

/** After a change that is meant: `npx vitest run test/unit/sync/stream-transcripts.test.ts -u`, and read what it changed. */
it("asks for these windows, in this order, and leaves these states", async () => {
  const parts: string[] = [];
  for (const [name, situation] of Object.entries(SITUATIONS))
    parts.push([`# ${name}`, ...(await told(situation)), ""].join("\n"));
  await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/stream-transcripts.txt");
});
