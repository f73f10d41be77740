import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RawLine } from "../../../src/sync/event.ts";
import type { RowState } from "../../../src/sync/state.ts";
import { dice } from "../../support/dice.ts";
import { ModelService, type Person, rowOf } from "../../support/model-service.ts";
import { DAY_MS, NOW } from "../../support/people-sync.ts";
import { runs } from "../../support/runs.ts";
import { byId, missingOf, type RunOptions, runStream } from "../../support/sync-run.ts";

/** What happens in a world besides newcomers and runs that are killed. */
type Events = Readonly<
  Partial<Record<"late" | "moves" | "settings" | "grants" | "keys" | "faults", boolean>>
>;

type Member = Person & { readonly orgs: string; readonly sources: readonly string[] };

const ANOTHER = "numbers are those of another organization";

/** An account over some weeks: what happens to people, sources and keys, and the runs of a connector. */
class World {
  readonly roll: (sides: number) => number;
  readonly events: Events;
  readonly span: number;
  readonly people: Member[] = [];
  readonly service: ModelService;
  readonly listed = new Set(["s1"]);
  readonly granted = new Set(["s1"]);
  readonly refused = new Set<string>();
  readonly lines: string[] = [];
  org = "A";
  key = "A1";
  isQuiet = false;
  lookback: number;
  state: RowState | null = null;
  #ids = 0;

  constructor(seed: number, events: Events, isTiny: boolean) {
    this.roll = dice(seed);
    this.events = events;
    this.span = this.pick([5, 30, 100]);
    this.lookback = this.pick([1, 1, 2, 7, 30]);
    this.service = new ModelService({
      now: NOW,
      people: this.people,
      latency: 20,
      filter: (person) => (person as Member).orgs.includes(this.org),
      row: (person) => {
        const seen = this.#sourcesOf(person);
        return {
          ...rowOf(person),
          raw: JSON.stringify({ ...JSON.parse(rowOf(person).raw), seen }) as RawLine,
        };
      },
      checkFails: (window) => {
        const source = window.kind === "closed" ? window.source : undefined;
        if (source !== undefined) return this.refused.has(source);
        return this.events.faults === true && !this.isQuiet && this.roll(9) === 0;
      },
      moment: () => {
        if (this.events.moves === true && !this.isQuiet && this.roll(40) === 0) this.move();
      },
    });
    const count = isTiny ? this.pick([1, 2, 3, 8]) : this.pick([12, 40, 120]);
    for (let nth = 0; nth < count; nth++) this.add(this.before(this.span));
    for (let nth = this.pick([0, 0, 2]); nth > 0; nth--) this.add(null);
  }

  pick<Value>(list: readonly Value[]): Value {
    return list[this.roll(list.length)] as Value;
  }

  /** A moment within the last days. */
  before(days: number): number {
    return this.service.now - 1_000 - this.roll(days * 1_000) * (DAY_MS / 1_000);
  }

  add(at: number | null, orgs = this.org): void {
    const sources = ["s1", ...(this.roll(5) === 0 ? ["s2"] : []), ...(this.roll(9) === 0 ? ["s3"] : [])];
    this.people.push({ id: `p${this.#ids++}`, at, user: false, orgs, sources });
  }

  move(): void {
    const person = this.people[this.roll(this.people.length)];
    if (person === undefined) return;
    const kind = this.roll(10);
    if (kind === 0) this.people.splice(this.people.indexOf(person), 1);
    else person.at = kind === 1 ? null : this.service.now;
  }

  #sourcesOf(person: Person): readonly string[] {
    return person.sources?.filter((slug) => this.granted.has(slug)) ?? [];
  }

  /** One run. A state of another organization is refused, and a person then begins a new one. */
  async run(
    change: Partial<RunOptions["settings"]> = {},
    stopAfter = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    this.service.sources =
      this.events.faults === true && !this.isQuiet && this.roll(5) === 0 ? undefined : [...this.listed];
    const settings = { lookbackWindowDays: this.lookback, maxWindowRows: 60, ...change };
    const options = { state: this.state, key: this.key, settings, stopAfter };
    const ran = await runStream(this.service.api(), options);
    if (String(ran.error).includes(ANOTHER)) {
      expect(ran.lines).toEqual([]);
      const isOther = this.state?.key?.[0] !== this.key[0];
      this.state = isOther || this.state === null ? null : { ...this.state, key: null };
      return await this.run(change, stopAfter);
    }
    this.lines.push(...ran.lines);
    this.state = ran.state;
    if (stopAfter === Number.POSITIVE_INFINITY)
      expect(ran).toMatchObject({ complete: true, error: undefined });
  }

  /** What happens until the next run. */
  pass(): void {
    const { late, moves, grants, keys, settings } = this.events;
    this.service.now += this.pick([0.02, 0.3, 1, 1, 1, 2, 6]) * DAY_MS;
    if (late === true && this.roll(2) === 0)
      for (let nth = this.pick([1, 2, 12]); nth > 0; nth--)
        this.add(this.before(this.pick([3, 10, 40, 120])) - DAY_MS);
    for (let nth = this.roll(4); nth > 0; nth--) this.add(this.service.now - this.roll(900_000));
    if (this.roll(5) === 0) this.add(null);
    if (moves === true) for (let nth = this.roll(9); nth > 0; nth--) this.move();
    if (settings === true && this.roll(5) === 0 && this.state !== null)
      this.state = withoutSpanOf(this.state, this.before(60));
    if (grants === true && this.roll(3) === 0) {
      const slug = this.pick(["s2", "s3"]);
      this.listed.add(slug);
      if (this.roll(3) === 0) this.refused.add(slug);
      else {
        this.refused.delete(slug);
        this.granted.add(slug);
      }
    }
    if (keys === true && this.roll(6) === 0) this.#changeKey();
  }

  /** A new key of the same organization, or one of another, with people of both. */
  #changeKey(): void {
    if (this.roll(2) === 0) {
      this.key = `${this.org}${this.roll(90)}`;
      return;
    }
    if (!this.people.some(({ orgs }) => orgs === "B")) {
      for (let nth = this.people.length; nth > 0; nth--) this.add(this.before(this.span), "B");
      for (const [nth, person] of this.people.entries())
        if (person.orgs === "A" && this.roll(5) === 0) this.people[nth] = { ...person, orgs: "AB" };
    }
    this.org = this.org === "A" ? "B" : "A";
    this.key = `${this.org}${this.roll(90)}`;
  }

  /** Settings of a single run. */
  change(): Partial<RunOptions["settings"]> {
    if (this.events.settings !== true || this.roll(2) === 0) return {};
    const day = () => new Date(this.before(70)).toISOString().slice(0, 10) as never;
    const [one, other] = [day(), day()].sort() as [never, never];
    return this.pick([
      ...[{ lookbackWindowDays: 1 + this.roll(46) }, { startDate: one }, { endDate: other }],
      ...[{ startDate: one, endDate: other }, { ignoreMissingDays: [one, other] }],
    ]);
  }

  /** People whose row, as it is now, never came. */
  get lost(): readonly string[] {
    const delivered = byId(this.lines);
    return this.people
      .filter(({ orgs }) => orgs.includes(this.org))
      .filter((person) => {
        const line = delivered.get(person.id);
        const row = line === undefined ? undefined : JSON.parse(line);
        const at = person.at === null ? null : new Date(person.at).toISOString();
        return row?.discoveredAt !== at || String(row.seen) !== String(this.#sourcesOf(person));
      })
      .map(({ id, at }) => `${id} ${at === null ? null : new Date(at).toISOString()}`);
  }
}

/** As `--recheck` marks a day. */
function withoutSpanOf(state: RowState, at: number): RowState {
  const day = new Date(at).toISOString().slice(0, 10);
  return { ...state, days: state.days.filter(({ from, to }) => day < from || day > to) };
}

async function play(seed: number, events: Events, isTiny: boolean): Promise<void> {
  const world = new World(seed, events, isTiny);
  for (let nth = 4 + world.roll(8); nth > 0; nth--) {
    await world.run(world.change(), world.roll(5) === 0 ? 1 + world.roll(9) : undefined);
    world.pass();
  }
  world.isQuiet = true;
  world.refused.clear();
  for (const slug of world.listed) world.granted.add(slug);
  for (let nth = 0; nth < 4; nth++) {
    world.service.now += DAY_MS;
    await world.run();
  }
  expect(world.lost).toEqual([]);
  expect(missingOf(world.state)).toEqual([]);
}

describe("everyone arrives with the newest row after some daily runs", () => {
  it.each<[string, Events]>([
    ["rows come late", { late: true, faults: true }],
    ["people are checked again, erased, and lose their date", { moves: true, faults: true }],
    ["rows come late and settings change", { late: true, settings: true }],
    ["people move and settings change", { moves: true, settings: true, faults: true }],
    ["sources are granted, keys change, rows come late", { late: true, grants: true, keys: true }],
  ])("where %s", async (_, events) => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.boolean(), (seed, isTiny) => play(seed, events, isTiny)),
      { numRuns: Number(process.env["SIMULATION_WORLDS"] ?? runs(15, 60)), endOnFailure: true },
    );
  });
});
