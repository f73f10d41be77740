import { expect, it } from "vitest";
import { BodyError, ConnectorError, DataError, ScrambledError, UnmadeError } from "../../../src/errors.ts";
import { undatedDigest } from "../../../src/streams/proof.ts";
import { readWindow } from "../../../src/streams/read-window.ts";
import type { Row, StreamApi } from "../../../src/streams/stream-api.ts";
import { Tally } from "../../../src/streams/tally.ts";
import { closedWindow, describe as named, type Window } from "../../../src/streams/window.ts";
import type { Planned, RunRules, WindowOutcome } from "../../../src/streams/window-result.ts";
import { WindowSize } from "../../../src/streams/window-size.ts";
import { addDays, BEGINNING, DAY_MS, type Day, startOf } from "../../../src/time.ts";
import { dice } from "../../support/dice.ts";
import {
  lineOf,
  type ModelOptions,
  ModelService,
  type Person,
  peopleOn,
  rowOf,
  undatedPeople,
} from "../../support/model-service.ts";
import { rulesWith } from "../../support/run-rules.ts";
import { digestOf } from "../../support/stories.ts";

const YESTERDAY = "2026-03-19" as Day;
const NOW = startOf(addDays(YESTERDAY, 1)) + DAY_MS / 2;
const FIRST = "2026-03-01" as Day;
/** The people of a situation: of ten days, of yesterday and of today. */
const DAYS = [...Array.from({ length: 10 }, (_, nth) => addDays(FIRST, nth)), YESTERDAY];

type Roll = (sides: number) => number;
/** What is wrong with a service, or asked of a run. */
type Trouble = {
  readonly service?: Partial<ModelOptions>;
  readonly rules?: Partial<RunRules>;
  readonly planned?: Partial<Planned>;
  /** What exports fail with, and how many of them. */
  readonly fails?: readonly [failure: typeof BodyError, many: number];
  readonly people?: readonly Person[];
  readonly change?: (size: WindowSize) => void;
  readonly sources?: readonly string[];
};

const ID = "p1-1";
const isOne = ({ id }: Person): boolean => id === ID;
const counted = (rows: number, undated: number, age: number): Partial<Planned> => ({
  count: { ...{ rows, undated, known: true }, asked: NOW - age, answered: NOW - age },
});
const each =
  (many: number, happens: (model: ModelService) => void): ((model: ModelService) => void) =>
  (model) => {
    if (model.asked.length % many === many - 1) happens(model);
  };
const spelt = (how: (row: Row) => Partial<Row>): Partial<ModelOptions> => ({
  row: (one) => (isOne(one) ? { ...rowOf(one), ...how(rowOf(one)) } : rowOf(one)),
});

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "nothing else": {},
  "a count of before": { planned: counted(19, 2, 50_000) },
  "a count of long ago": { planned: counted(19, 2, 70_000) },
  "a range that drained": { planned: { clears: "again" } },
  "a day that was missing": { planned: { clears: "missing" } },
  "nothing to verify": { rules: { verifyCounts: false } },
  "no export": { rules: { isExported: false } },
  "no list": { rules: { isListed: false } },
  "rows without a key pass": { rules: { onMissingKey: "pass" }, service: spelt(() => ({ key: "" })) },
  "rows without a key are dropped": { rules: { onMissingKey: "drop" }, service: spelt(() => ({ key: "" })) },
  "a row without a key": { service: spelt(() => ({ key: "" })) },
  "a row that is held": { service: spelt(() => ({ isHeld: true })) },
  "a date that no rule can read": { service: spelt(() => ({ cursor: "soon" })) },
  "a row of another day": { service: spelt(() => ({ cursor: "2026-02-01T00:00:00Z" })) },
  "an end before now": { rules: { until: startOf(YESTERDAY) + DAY_MS / 3 } },
  "an ignored day": { rules: { ignoredDays: new Set([FIRST, addDays(FIRST, 1)]) } },
  "windows of 9 rows": { rules: { windowSize: new WindowSize(9) } },
  "exports that are known to fail": { change: (size) => void Object.assign(size, { exportsFail: true }) },
  "days that are known to fall short": { change: (size) => void Object.assign(size, { fallsShort: true }) },
  "an export that cannot be made": { fails: [UnmadeError, 1] },
  "exports that cannot be made": { fails: [UnmadeError, 99] },
  "an export that breaks off": { fails: [BodyError, 1] },
  "two exports that break off": { fails: [BodyError, 2] },
  "exports that break off": { fails: [BodyError, 99] },
  "an export whose check sum is wrong": { fails: [ScrambledError, 1] },
  "an export that ends early": {
    service: { cut: (_, nth) => (nth < 1 ? { rows: 2, loud: false } : undefined) },
  },
  "four that end early": { service: { cut: (_, nth) => (nth < 4 ? { rows: 2, loud: false } : undefined) } },
  "exports that end early": { service: { cut: () => ({ rows: 2, loud: false }) } },
  "exports that end early, each elsewhere": {
    service: { cut: (_, nth) => ({ rows: nth % 4, loud: false }) },
  },
  "a row that exports leave out": { service: { omits: isOne } },
  "a row that nothing shows": {
    service: { omits: isOne, list: (rows) => rows.filter((one) => !isOne(one)) },
  },
  "a row more than is counted": { service: { total: (rows) => Math.max(0, rows - 1) } },
  "a row less than is counted": { service: { total: (rows) => rows + 1 } },
  "totals of at most 10": { service: { total: (rows) => Math.min(rows, 10) } },
  "totals that are half": { service: { total: (rows) => rows >> 1 } },
  "a list the other way round": { service: { list: (rows) => rows.toReversed() } },
  "a list that begins again": { service: { list: (rows) => [rows, rows, rows].flat() } },
  "a list in any order": {
    service: { list: (rows) => rows.map((_, nth, all) => all[(nth * 7) % all.length] as Person) },
  },
  "a list that ends early": { service: { list: (rows) => rows.slice(0, 11) } },
  "an empty list": { service: { list: () => [] } },
  "a second page that breaks": { service: { breaks: (_, number) => number === 2 } },
  "a page that breaks now and then": { service: { breaks: (_window, _number, nth) => nth % 3 === 1 } },
  "pages that break": { service: { breaks: () => true } },
  "somebody who moves": {
    service: {
      moment: each(3, ({ people, now, asked }) => {
        const one = people[asked.length % people.length];
        if (one !== undefined) one.at = now;
      }),
    },
  },
  "somebody who leaves": {
    service: { moment: each(2, ({ people, asked }) => void people.splice(asked.length % 20, 1)) },
  },
  "somebody who comes late": {
    service: {
      moment: each(
        3,
        ({ people }) => void people.push({ id: `late${people.length}`, at: startOf(FIRST), user: false }),
      ),
    },
  },
  "somebody who comes": {
    service: {
      moment: each(
        2,
        ({ people, now }) => void people.push({ id: `new${people.length}`, at: now, user: false }),
      ),
    },
  },
  "more people without a date": { people: undatedPeople(25) },
  "people without a date who were delivered": {
    planned: { ...counted(22, 25, 1_000), isKnown: true },
    people: undatedPeople(25),
  },
  "fewer people without a date than were counted": { planned: { ...counted(22, 4, 1_000), isKnown: true } },
  "rows that share a key": {
    rules: { onMissingKey: "pass" },
    service: { row: (one) => ({ ...rowOf(one), key: one.id.endsWith("-0") ? '"one"' : rowOf(one).key }) },
  },
  "a row of the moment of the count": { people: [{ id: "now", at: NOW, user: false }] },
  "rows of moments that are the same": {
    people: ["b", "a", "c"].map((id) => ({ id, at: NOW - 3_000, user: false })),
  },
  "an outage at the fourth request": {
    service: {
      moment: ({ asked }) => {
        if (asked.length === 4) throw new DataError("Cannot read anything: the service is down");
      },
    },
  },
  "a large day": {
    people: peopleOn([FIRST], 40).map((one) => ({ ...one, id: `x${one.id}`, source: "crm" })),
    sources: ["crm", "ads"],
  },
};

const WINDOWS: readonly Window[] = [
  closedWindow(FIRST, FIRST),
  closedWindow(addDays(FIRST, 1), addDays(FIRST, 1)),
  closedWindow(FIRST, addDays(FIRST, 1)),
  closedWindow(FIRST, addDays(FIRST, 9)),
  { kind: "open", from: YESTERDAY, undated: false },
  { kind: "open", from: FIRST, undated: false },
  { kind: "open", from: BEGINNING, undated: true },
  { kind: "undated" },
  { kind: "all" },
];

/** What a run asks of a service, and how many rows it delivers: a line for each window, as long as it is asked of no other. */
class Story {
  readonly lines: string[] = [];
  #window = "";

  say(what: string, window?: Window): void {
    const about = window === undefined ? this.#window : named(window);
    if (about !== this.#window || this.lines.length === 0) this.lines.push(`  ${about}: ${what}`);
    else this.lines[this.lines.length - 1] += `, ${what}`;
    this.#window = about;
  }

  api(api: StreamApi, [Failure, many]: NonNullable<Trouble["fails"]>): StreamApi {
    let exports = 0;
    return {
      ...api,
      stream: (window) => {
        this.say("export", window);
        return exports++ < many ? broken(api.stream(window), Failure) : api.stream(window);
      },
      count: async (window) => {
        const count = await api.count(window);
        const { known, rows, undated } = count;
        this.say(known ? `count ${rows}${undated > 0 ? ` and ${undated}` : ""}` : "no count", window);
        return count;
      },
      hasRows: async (window) => {
        this.say("any", window);
        return await api.hasRows(window);
      },
      rowAt: async (window, place) => {
        this.say(`row ${place}`, window);
        return await api.rowAt(window, place);
      },
      page: async (window, number) => {
        this.say(`page ${number}`, window);
        return await api.page(window, number);
      },
      sources: async () => {
        this.say("sources");
        return await api.sources();
      },
      backOff: async (failures) => {
        this.say(`wait ${failures}`);
        await api.backOff(failures);
      },
      notify: (notice) => {
        if (notice.kind === "log") this.say(`"${notice.text}"`);
      },
    };
  }
}

/** An export that fails after its first batch, or, if it cannot be made, before. */
async function* broken(
  batches: ReturnType<StreamApi["stream"]>,
  Failure: typeof BodyError,
): ReturnType<StreamApi["stream"]> {
  for await (const batch of batches) {
    if (Failure !== UnmadeError) yield batch;
    throw new Failure(`The export failed as ${Failure.name}`);
  }
}

const daysOf = (rows: ReadonlyMap<Day, number>): string =>
  [...rows].map(([day, many]) => `${day.slice(8)}: ${many}`).join(", ");

function told({
  window,
  cause,
  rowsByDay,
  heldByDay,
  undatedSeen,
  facts,
  kind,
  ...more
}: WindowOutcome): string {
  const { counted_before, counted_after, shown, emitted, suppressed, passes, requests, seconds } =
    facts ?? {};
  return [
    `  ${kind}: ${named(window)} ${JSON.stringify({ ...more, seen: undatedSeen?.length })}`,
    ` counted ${counted_before}, then ${counted_after}; shown ${shown}, emitted ${emitted}, held ${suppressed}`,
    `; ${passes} passes, ${requests} requests, ${seconds} s`,
    rowsByDay === undefined ? "" : `; ${daysOf(rowsByDay)}`,
    heldByDay === undefined || heldByDay.size === 0 ? "" : `; held ${daysOf(heldByDay)}`,
    cause instanceof Error ? `; ${cause.name}: ${cause.message}` : "",
  ].join("");
}

/** Reads a window under some troubles. */
async function readUnder(
  window: Window,
  troubles: readonly Trouble[],
  roll: Roll,
): Promise<readonly string[]> {
  const people = peopleOn(DAYS, 1 + roll(3)).map((one, nth) => ({
    ...one,
    source: nth % 2 === 0 ? "crm" : "ads",
  }));
  const all: Trouble = Object.assign({}, ...troubles);
  const service = new ModelService({
    ...{ now: NOW, latency: 20, batch: 4 },
    people: [...people, ...undatedPeople(roll(3)), ...(all.people ?? []).map((one) => ({ ...one }))],
    ...Object.assign({}, ...troubles.map((one) => one.service)),
  });
  service.sources = all.sources;
  const rules = rulesWith({ latest: NOW, ...Object.assign({}, ...troubles.map((one) => one.rules)) });
  const windowSize = new WindowSize(rules.windowSize.maxWindowRows);
  all.change?.(windowSize);
  const story = new Story();
  let passes = 0;
  const tally = new Tally(
    story.api(service.api(rules.verifyCounts), all.fails ?? [BodyError, 0]),
    () => void passes++,
  );
  const planned: Planned = {
    window,
    clears: null,
    ...Object.assign({}, ...troubles.map((one) => one.planned)),
  };
  const delivered: string[] = [];
  try {
    const reading = readWindow(planned, { ...rules, api: tally.api, tally, windowSize });
    let next = await reading.next();
    for (; next.done !== true; next = await reading.next()) {
      if (next.value.lines.length > 0) story.say(`+${next.value.lines.length}`);
      delivered.push(...next.value.lines.map((line) => String(JSON.parse(line).id)));
    }
    story.lines.push(...next.value.map(told));
  } catch (error) {
    if (!(error instanceof ConnectorError)) throw error;
    story.lines.push(`  ${error.name}: ${error.message}`);
  }
  const twice = delivered.filter((id, nth) => delivered.indexOf(id) < nth);
  const last = delivered.at(-1) ?? "nobody";
  const { rows, most, exportsFail, fallsShort } = windowSize;
  story.lines.push(
    `  ${delivered.length} rows, the last is ${last}, ${twice.length} twice, in ${passes} passes; ` +
      `then ${rows} of at most ${most} a window${exportsFail ? ", no exports" : ""}${fallsShort ? ", which fall short" : ""}`,
  );
  return story.lines;
}

/** Each trouble with two others, and what rarely comes together. */
function situations(roll: Roll): readonly (readonly [window: Window, names: readonly string[]])[] {
  const names = Object.keys(TROUBLES);
  const random = Array.from({ length: 2 * names.length }, (_, nth) => {
    const chosen = [names[nth % names.length], names[roll(names.length)], names[roll(names.length)]];
    return [WINDOWS[nth % WINDOWS.length] as Window, chosen.map((name) => name ?? "")] as const;
  });
  const [day, , days] = WINDOWS as readonly [Window, Window, Window];
  const large = ["a large day", "windows of 9 rows"];
  const some = ["an export that breaks off", "two exports that break off", "exports that break off"];
  const undated: Window = { kind: "undated" };
  return [
    ...random,
    ...some.flatMap((broken) => [day, days].map((window) => [window, [...large, broken]] as const)),
    [day, [...large, "exports that break off", "somebody who leaves"]],
    [day, [...large, "an export that ends early"]],
    ...[
      "a list the other way round",
      "a list that ends early",
      "a second page that breaks",
      "an empty list",
    ].map((list) => [undated, ["more people without a date", list]] as const),
    [undated, ["more people without a date", "an empty list", "two exports that break off"]],
    [undated, ["more people without a date", "an empty list", "exports that break off"]],
    ...[day, days, { kind: "all" } as const].flatMap((window) =>
      ["nothing else", "no export", "a row that is held"].map(
        (other) => [window, ["rows that share a key", other]] as const,
      ),
    ),
    [day, ["a large day", "exports that break off", "a list that ends early"]],
  ];
}

const MORE: Readonly<Record<string, Trouble>> = {
  ...TROUBLES,
  "a list that turns back at its end": { service: { turnsBack: true } },
  "exports that show who has moved": {
    service: { ...TROUBLES["somebody who moves"]?.service, showsMoved: true },
  },
  "no totals": { rules: { verifyCounts: false }, service: { total: () => null } },
  "totals of days alone": {
    rules: { verifyCounts: false },
    service: { total: (rows, { kind }) => (kind === "all" ? null : rows) },
  },
  "a newest row of after the first count": { rules: { latest: startOf(YESTERDAY) } },
  "somebody without a date who was delivered": {
    rules: { undatedSeen: new Set([undatedDigest('"u0"', lineOf({ id: "u0", at: null, user: false }))]) },
    people: undatedPeople(3),
  },
};

/** What a number of stories have in common, in one line. Its digest is of every request, row and outcome. */
function summaryOf(name: string, stories: readonly string[]): string {
  const all = stories.join("\n");
  const many = (what: RegExp): number => all.match(what)?.length ?? 0;
  const numbers = [
    `${many(/(?:count|export|page|row|any)\b/g)} requests`,
    ...["proven", "again", "missing", "ignored"].map(
      (kind) => `${many(new RegExp(`^  ${kind}: `, "gm"))} ${kind}`,
    ),
    `${many(/^ {2}\w*Error: /gm)} failed`,
  ];
  return `${name}: ${numbers.join(", ")}; ${digestOf(name, stories)}`;
}

/** Each trouble in each window, with one and with two others. `TOLD="a row that is held" npx vitest run …` prints its stories. */
it("reads windows of each kind in many more situations as these lines sum them up", async () => {
  const roll = dice(7);
  const names = Object.keys(MORE);
  const lines: string[] = [];
  for (const name of names) {
    const stories: string[] = [];
    for (const window of WINDOWS)
      for (const others of [1, 2]) {
        const chosen = [name, ...Array.from({ length: others }, () => names[roll(names.length)] ?? "")];
        const troubles = chosen.map((one) => MORE[one] ?? {});
        const lines = await readUnder(window, troubles, roll);
        stories.push(`${named(window)}: ${chosen.join(", ")}`, ...lines);
      }
    lines.push(summaryOf(name, stories));
  }
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/window-sums.txt");
});

it("reads windows so, whatever is wrong with the service", async () => {
  const roll = dice(20);
  const parts: string[] = [];
  for (const [window, chosen] of situations(roll)) {
    const lines = await readUnder(
      window,
      chosen.map((name) => TROUBLES[name] ?? {}),
      roll,
    );
    parts.push([`# ${named(window)}: ${[...new Set(chosen)].join(", ")}`, ...lines, ""].join("\n"));
  }
  await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/window-transcripts.txt");
});
