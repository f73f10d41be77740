import type { Sandbox, SandboxOptions } from "../../sandbox/server.ts";
import type { Config } from "../../src/config/config.ts";
import type { StreamState } from "../../src/streams/event.ts";
import {
  aheadOfDelivery,
  Destination,
  isPending,
  lackedByComplete,
  nameOf,
  repeatedIn,
  stayed,
} from "./invariants.ts";
import {
  type Delivered,
  fastClock,
  Hung,
  labConfig,
  type Outcome,
  patienceFor,
  readOnce,
  withSandbox,
} from "./read-once.ts";

/** What goes wrong, and what is to come of it. */
export type Scenario = {
  readonly name: string;
  readonly faults: readonly string[];
  /** Default: people. */
  readonly stream?: "people" | "companies";
  readonly sandbox?: SandboxOptions;
  readonly config?: Partial<Config>;
  /**
   * `whole`: every row at the end of this run, or of a healed one. `complete`: besides, this run ends complete.
   * `refused`: this run fails with an error that tells the operator. `residual`: what the docs say no rule removes.
   */
  readonly expect: "whole" | "complete" | "refused" | "residual";
  /** The most requests that the first healed run, which has little to read, may make. */
  readonly mostRequestsHealed?: number;
  /** Days whose rows the operator gave up. */
  readonly givenUp?: readonly string[];
  /** How wrong this machine's clock is (ms). */
  readonly skew?: number;
};

/** A line of the table. */
export type Result = {
  readonly name: string;
  readonly happened: string;
  readonly served: number;
  readonly delivered: number;
  readonly repeated: number;
  readonly requests: number;
  readonly violations: readonly string[];
};

const START = "2026-03-20T10:00:00Z";
const MOST_REQUESTS = 4_000;
/** Runs after the last fault, by whose end everything must be delivered. */
const HEALED_RUNS = 3;
const DAY_MS = 86_400_000;

export const LAB_SANDBOX: SandboxOptions = {
  people: 300,
  undated: 3,
  days: 60,
  companies: 10,
  requestsPerMinute: 0,
  now: START,
};

/** Runs one scenario: once with its faults, then healed; checks what must hold after each run. */
export function runScenario(scenario: Scenario): Promise<Result> {
  return withSandbox({ ...LAB_SANDBOX, ...scenario.sandbox }, (sandbox) => runAgainst(sandbox, scenario));
}

async function runAgainst(sandbox: Sandbox, scenario: Scenario): Promise<Result> {
  const { expect, mostRequestsHealed = MOST_REQUESTS } = scenario;
  const pipeline = new Pipeline(sandbox, labConfig(sandbox, scenario.config), scenario);
  sandbox.fault(...scenario.faults);
  const first = await pipeline.run(scenario.faults);
  if (expect === "refused" && first.complete) pipeline.violate("complete where an error was due");
  if (expect === "complete" && !first.complete) pipeline.violate(`not complete: ${reasonOf(first)}`);
  sandbox.fault();
  let lacking = Number.POSITIVE_INFINITY;
  for (let run = 0; run < HEALED_RUNS && lacking > 0; run++) {
    sandbox.advance(run === 0 ? 5_000 : DAY_MS);
    const before = sandbox.requests.length;
    const healed = await pipeline.run([]);
    if (!healed.complete) pipeline.violate(`healed run ${run + 1} is not complete: ${reasonOf(healed)}`);
    const asked = sandbox.requests.length - before;
    if (run === 0 && asked > mostRequestsHealed) pipeline.violate(`${asked} requests in the healed run`);
    lacking = pipeline.lacking().length;
  }
  if (lacking > 0) pipeline.violate(`${lacking} rows are lacking after ${HEALED_RUNS} healed runs`);
  if (sandbox.requests.length > MOST_REQUESTS) pipeline.violate(`${sandbox.requests.length} requests`);
  const served = servedTo(sandbox, scenario).length;
  return {
    name: scenario.name,
    happened: describe(first, pipeline),
    served,
    delivered: served - lacking,
    repeated: pipeline.repeated,
    requests: pipeline.firstRequests,
    violations: expect === "residual" ? [] : pipeline.violations,
  };
}

/** What a reader of the scenario's stream is to have. */
function servedTo(sandbox: Sandbox, scenario: Scenario): readonly Delivered[] {
  const { stream, config, sandbox: options, givenUp = [] } = scenario;
  if (stream === "companies") {
    const dated = options?.companiesDated ?? true;
    return sandbox.companies().map(({ domain, discoveredAt = null }) => ({
      id: domain,
      discoveredAt: dated ? discoveredAt : null,
    }));
  }
  const { isUser = "all" } = config ?? {};
  const people = sandbox
    .people()
    .filter(({ discoveredAt }) => !givenUp.includes(discoveredAt?.slice(0, 10) ?? ""));
  return isUser === "all"
    ? people
    : people.filter(({ sources }) => sources.length > 0 === (isUser === "true"));
}

/** The runs of one connection, whose state goes from each to the next. */
class Pipeline {
  readonly destination = new Destination();
  readonly violations: string[] = [];
  repeated = 0;
  firstRequests = 0;
  lackedFirst = 0;
  readonly #sandbox: Sandbox;
  readonly #config: Config;
  readonly #scenario: Scenario;
  #state: StreamState | null = null;

  constructor(sandbox: Sandbox, config: Config, scenario: Scenario) {
    this.#sandbox = sandbox;
    this.#config = config;
    this.#scenario = scenario;
  }

  violate(what: string): void {
    this.violations.push(what);
  }

  /** Rows that are served and have not come. */
  lacking(): readonly Delivered[] {
    return this.destination.lacks(servedTo(this.#sandbox, this.#scenario));
  }

  /** @param faults those under which it runs */
  async run(faults: readonly string[]): Promise<Outcome> {
    const sandbox = this.#sandbox;
    const before = servedTo(sandbox, this.#scenario);
    const asked = sandbox.requests.length;
    const outcome = await readOnce({
      config: { ...this.#config, idleTimeoutSeconds: patienceFor(faults) },
      stream: this.#scenario.stream,
      state: this.#state,
      clock: fastClock(this.#scenario.skew),
    });
    const still = stayed(before, servedTo(sandbox, this.#scenario));
    const bringsUndated = isPending(this.#state);
    this.violations.push(...aheadOfDelivery(outcome, this.destination, still, bringsUndated));
    this.destination.take(outcome.records);
    const repeated = repeatedIn(outcome);
    this.repeated += repeated;
    if (repeated > 0) this.violate(`${repeated} records came twice in a run`);
    const now = sandbox.requests[asked]?.at ?? 0;
    const lacked = lackedByComplete(this.destination, outcome, still, { now, bringsUndated });
    if (outcome.complete && lacked.length > 0)
      this.violate(`complete although ${lacked.length} rows are lacking, as ${nameOf(lacked)}`);
    if (outcome.error instanceof Hung) this.violate(outcome.error.message);
    this.#state = outcome.checkpoints.at(-1)?.state ?? this.#state;
    if (this.firstRequests === 0) {
      this.firstRequests = sandbox.requests.length;
      this.lackedFirst = this.destination.lacks(still).length;
    }
    return outcome;
  }
}

function describe(first: Outcome, pipeline: Pipeline): string {
  const rest = pipeline.lackedFirst === 0 ? "" : `, ${pipeline.lackedFirst} rows came with the next run`;
  if (first.complete) return pipeline.lackedFirst === 0 ? "complete, every row" : `complete${rest}`;
  return `failed (${kindOf(first.error)})${rest}`;
}

const kindOf = (error: unknown): string => (error instanceof Error ? error.name : "no error");

const reasonOf = ({ error }: Outcome): string => (error instanceof Error ? error.message : String(error));
