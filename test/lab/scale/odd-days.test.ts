import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UnmadeError } from "../../../src/errors.ts";
import { parseDatedState } from "../../../src/state/dated.ts";
import { missingDaysOf } from "../../../src/streams/coverage.ts";
import type { DatedState } from "../../../src/streams/dated-state.ts";
import type { StreamApi } from "../../../src/streams/stream-api.ts";
import { addDays, DAY_MS, type Day, startOf } from "../../../src/time.ts";
import { dice } from "../../support/dice.ts";
import { ModelService, type Person, peopleOn, undatedPeople } from "../../support/model-service.ts";
import { runs } from "../../support/runs.ts";
import { type Ran, repeated, runStream } from "../../support/sync-run.ts";

const TODAY = "2026-03-20" as Day;
const NOON = startOf(TODAY) + DAY_MS / 2;

/** What a service does wrong on the days of a chain before its last ones. */
const ODDITIES = [
  ...["none", "shows nothing yet", "grants a source", "stands still", "wrong clock", "refuses page 2"],
  ...["people get and lose a date", "twins", "counts the erased", "limits exports"],
  "lags",
] as const;
/**
 * The last day on which people move, that on which the service becomes well, and the last of all. Three days' checks lie
 * between the first two: rows that come late into days that as many rows have left are found once all days were counted.
 */
const [MOVES_UNTIL, WELL, LAST_DAY] = [3, 7, 11];

const CHAIN = fc.record({
  seed: fc.nat(),
  oddity: fc.constantFrom(...ODDITIES),
  days: fc.integer({ min: 3, max: 60 }),
  perDay: fc.integer({ min: 1, max: 6 }),
  undated: fc.integer({ min: 0, max: 12 }),
  moving: fc.integer({ min: 0, max: 20 }),
  maxWindowRows: fc.constantFrom(20, 60, 250_000),
  /** The day before which the state is handed over in the words of version 1. */
  version1: fc.option(fc.integer({ min: 1, max: WELL - 1 })),
});
/** Chains in which a row that came late was never found: as many had left, of days that no check had counted. */
const EXAMPLES: [Chain][] = [
  { seed: 2083452349, days: 35, perDay: 1, undated: 12, moving: 7 },
  { seed: 2147483646, days: 29, perDay: 6, undated: 5, moving: 3 },
].map((chain) => [{ ...chain, oddity: "stands still", maxWindowRows: 20, version1: null }]);
type Chain = typeof CHAIN extends fc.Arbitrary<infer Value> ? Value : never;

/** A state as version 1 wrote it. */
function inVersion1({ discoveredAt, days, undated, checked, filters, full_refresh }: DatedState): object {
  const again = days.filter(([, , , status]) => status === "again").map(([from, to]) => [from, to]);
  return {
    ...{ version: 1, discoveredAt, from: null, gap: null, filters, full_refresh, recheck: again },
    missing_days: missingDaysOf(days),
    undated: undated === null ? "pending" : "done",
    ...{ undated_rows: undated?.rows ?? null, undated_checked: checked },
  };
}

class Account {
  readonly #chain: Chain;
  readonly #roll: (sides: number) => number;
  readonly service: ModelService;
  /** What lists and exports come from while the service lags: everybody as they were before the morning. */
  #replica: ModelService | undefined;
  day = 0;

  constructor(chain: Chain) {
    this.#chain = chain;
    this.#roll = dice(chain.seed);
    const days = Array.from({ length: chain.days }, (_, nth) => addDays(TODAY, nth - chain.days));
    const people = peopleOn(days, chain.perDay).map((person, nth) => ({
      ...person,
      ...(chain.oddity === "grants a source" && nth % 4 === 0 && { source: "erp" }),
    }));
    this.service = new ModelService({
      ...{ now: NOON, latency: 20, people: [...people, ...undatedPeople(chain.undated)] },
      filter: (person) => this.#isVisible(person),
      breaks: (_window, number) => this.#is("refuses page 2") && number > 1,
      list: (rows) => (this.#is("twins") ? rows.flatMap((row) => [row, row]) : rows),
      omits: ({ id }) => this.#is("counts the erased") && id === "p0-0",
    });
    this.service.sources = ["crm"];
  }

  #is(oddity: Chain["oddity"]): boolean {
    return this.#chain.oddity === oddity && this.day < WELL;
  }

  #isVisible({ id, source }: Person): boolean {
    if (this.#is("shows nothing yet")) return false;
    if (this.#is("stands still")) return !id.startsWith("new") || id === "new0";
    return source === undefined || this.service.sources?.includes(source) === true;
  }

  api(): StreamApi {
    const api = this.service.api();
    const isLimited = this.#is("limits exports");
    const { stream, page } = this.#replica?.api() ?? api;
    const ahead = this.#is("wrong clock") && this.day === 2 ? 45 * DAY_MS : 0;
    return {
      ...api,
      page,
      count: async (window) => {
        const { asked, answered, ...count } = await api.count(window);
        return { ...count, asked: asked + ahead, answered: answered + ahead };
      },
      stream: async function* (window) {
        if (isLimited && (await api.count(window)).rows > 50) throw new UnmadeError("The answer is 504");
        yield* stream(window);
      },
    };
  }

  /** What happens before the run of a day. */
  morning(): void {
    const { service } = this;
    const { moving, oddity } = this.#chain;
    const people = service.people.map((person) => ({ ...person }));
    this.#replica = this.#is("lags")
      ? new ModelService({ now: service.now, latency: 20, people })
      : undefined;
    if (this.day >= WELL) service.sources = ["crm", "erp"];
    service.people.push({ id: `new${this.day}`, at: service.now - 3_600_000, user: false });
    for (let nth = 0; nth < moving && this.day <= MOVES_UNTIL; nth++) {
      const person = service.people[this.#roll(service.people.length)];
      if (person === undefined) continue;
      const loses = oddity === "people get and lose a date" && this.#roll(3) === 0;
      person.at = loses ? null : service.now - this.#roll(3_600_000);
    }
  }
}

describe("readStream() once a day over a service that is odd", () => {
  it("has everybody some days after the service is well, over a state of version 1 too", async () => {
    await fc.assert(
      fc.asyncProperty(CHAIN, async (chain) => {
        const account = new Account(chain);
        const { service } = account;
        const delivered = new Set<string>();
        let state: DatedState | null = null;
        let last: Ran | undefined;
        for (; account.day <= LAST_DAY; account.day++) {
          account.morning();
          if (state !== null && account.day === chain.version1)
            state = parseDatedState("people", JSON.parse(JSON.stringify(inVersion1(state))));
          last = await runStream(account.api(), { state, settings: { maxWindowRows: chain.maxWindowRows } });
          // Days that got rows late are read whole, and once more for the source that was granted.
          if (chain.oddity !== "grants a source") expect(repeated(last.lines)).toEqual([]);
          for (const line of last.lines) delivered.add(line);
          state = last.state;
          service.now += DAY_MS;
        }
        expect(last).toMatchObject({ complete: true, error: undefined });
        expect([...service.served().values()].filter((line) => !delivered.has(line))).toEqual([]);
      }),
      { examples: EXAMPLES, numRuns: runs(60, 1_500) },
    );
  });
});
