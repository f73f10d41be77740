import type { Config } from "../../src/config.ts";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/server.ts";
import type { StreamState } from "../../src/sync/event.ts";
import { aheadOfDelivery, Destination, lackedByGreen, repeatedIn, stayed } from "./invariants.ts";
import { type Delivered, fastClock, labConfig, type Outcome, readOnce, withSandbox } from "./lab.ts";

/** What goes wrong, and what is to come of it. */
export type Scenario = {
  readonly name: string;
  readonly faults: readonly string[];
  /** Default: people. */
  readonly stream?: "people" | "companies";
  readonly sandbox?: SandboxOptions;
  readonly config?: Partial<Config>;
  /**
   * `whole`: all rows at the end of this run or, healed, of the next. `refused`: an error tells the operator; healed,
   * all rows. `residual`: what the docs say no rule removes.
   */
  readonly expect: "whole" | "refused" | "residual";
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
const MOST_SECONDS = 60;

export const LAB_SANDBOX: SandboxOptions = {
  people: 300,
  undated: 3,
  days: 60,
  companies: 10,
  requestsPerMinute: 0,
  now: START,
};

/** Runs one scenario: with its faults, then healed; checks what must hold after each run. */
export function play(scenario: Scenario): Promise<Result> {
  return withSandbox({ ...LAB_SANDBOX, ...scenario.sandbox }, (sandbox) => playAgainst(sandbox, scenario));
}

async function playAgainst(sandbox: Sandbox, scenario: Scenario): Promise<Result> {
  const began = performance.now();
  const lab = new Pipeline(sandbox, labConfig(sandbox, scenario.config), scenario);
  sandbox.fault(...scenario.faults);
  const first = await lab.run();
  sandbox.fault();
  sandbox.advance(5_000);
  const second = await lab.run();
  if (!second.complete) lab.violate(`the healed run is not green: ${reasonOf(second)}`);
  const served = servedTo(sandbox, scenario);
  const lacking = lab.destination.lacks(served);
  if (lacking.length > 0) lab.violate(`${lacking.length} rows are lacking after the healed run`);
  if (scenario.expect === "refused" && first.complete) lab.violate("green where an error was due");
  if (sandbox.requests.length > MOST_REQUESTS) lab.violate(`${sandbox.requests.length} requests`);
  if (performance.now() - began > MOST_SECONDS * 1_000) lab.violate(`took longer than ${MOST_SECONDS} s`);
  return {
    name: scenario.name,
    happened: describe(first, lab),
    served: served.length,
    delivered: served.length - lacking.length,
    repeated: lab.repeated,
    requests: lab.firstRequests,
    violations: scenario.expect === "residual" ? [] : lab.violations,
  };
}

/** What a reader of the scenario's stream is to have. */
function servedTo(sandbox: Sandbox, { stream, config, sandbox: options }: Scenario): readonly Delivered[] {
  if (stream === "companies") {
    const dated = options?.companiesDated ?? true;
    return sandbox.companies().map(({ domain, discoveredAt = null }) => ({
      id: domain,
      discoveredAt: dated ? discoveredAt : null,
    }));
  }
  const { isUser = "all" } = config ?? {};
  const people = sandbox.people();
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

  async run(): Promise<Outcome> {
    const sandbox = this.#sandbox;
    const before = servedTo(sandbox, this.#scenario);
    const outcome = await readOnce({
      config: this.#config,
      stream: this.#scenario.stream,
      state: this.#state,
      clock: fastClock(this.#scenario.skew),
    });
    const still = stayed(before, servedTo(sandbox, this.#scenario));
    this.violations.push(...aheadOfDelivery(outcome, this.destination, still));
    this.destination.take(outcome.records);
    const repeated = repeatedIn(outcome);
    this.repeated += repeated;
    if (repeated > 0) this.violate(`${repeated} records came twice in a run`);
    const now = Date.parse(START);
    const lacked = lackedByGreen(this.destination, still, now);
    if (outcome.complete && lacked.length > 0)
      this.violate(`green although ${lacked.length} rows are lacking`);
    this.#state = outcome.checkpoints.at(-1)?.state ?? this.#state;
    if (this.firstRequests === 0) {
      this.firstRequests = sandbox.requests.length;
      this.lackedFirst = this.destination.lacks(still).length;
    }
    return outcome;
  }
}

function describe(first: Outcome, lab: Pipeline): string {
  const rest = lab.lackedFirst === 0 ? "" : `, ${lab.lackedFirst} rows came with the next run`;
  if (first.complete) return lab.lackedFirst === 0 ? "green, whole" : `green${rest}`;
  return `not green (${kindOf(first.error)})${rest}`;
}

const kindOf = (error: unknown): string => (error instanceof Error ? error.name : "no error");

const reasonOf = ({ error }: Outcome): string => (error instanceof Error ? error.message : String(error));
