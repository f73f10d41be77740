import type { Sandbox, SandboxOptions } from "../../../sandbox/server.ts";
import type { Config } from "../../../src/config/config.ts";
import { filtered, Pipeline } from "./invariants.ts";
import {
  type Delivered,
  fastClock,
  labConfig,
  type Outcome,
  patienceFor,
  readOnce,
  sharedClock,
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
  /** Whether the first sync cannot see all rows, and the first sync of the next day must find them. */
  readonly isLate?: boolean;
  /** Whether waiting takes its time, at the service as well. */
  readonly waits?: boolean;
  /** How wrong this machine's clock is (ms). */
  readonly skew?: number;
};

/** What the run under faults came to, and which promises were broken. */
type Result = { readonly happened: string; readonly violations: readonly string[] };

const MOST_REQUESTS = 4_000;
/** Runs after the last fault, by whose end everything must be delivered. */
const HEALED_RUNS = 3;
const DAY_MS = 86_400_000;

export const LAB_SANDBOX: SandboxOptions = {
  people: 300,
  undated: 3,
  days: 60,
  companies: 10,
  now: "2026-03-20T10:00:00Z",
};

/** Runs one scenario: once with its faults, then healed; checks what must hold after each run. */
export function runScenario(scenario: Scenario): Promise<Result> {
  return withSandbox({ ...LAB_SANDBOX, ...scenario.sandbox }, (sandbox) => runAgainst(sandbox, scenario));
}

async function runAgainst(sandbox: Sandbox, scenario: Scenario): Promise<Result> {
  const { expect, faults, stream, mostRequestsHealed = MOST_REQUESTS, isLate, waits, skew } = scenario;
  const pipeline = new Pipeline(sandbox, () => servedTo(sandbox, scenario));
  const violations: string[] = [];
  const run = (under: readonly string[]): Promise<Outcome> => {
    const config = labConfig(sandbox, { ...scenario.config, idleTimeoutSeconds: patienceFor(under) });
    const clock = waits === true ? sharedClock(sandbox) : fastClock(skew);
    const random = () => (waits === true ? 0.5 : 0);
    return pipeline.run((state) => readOnce({ config, stream, state, clock, random }));
  };
  sandbox.fault(...faults);
  const first = await run(faults);
  let lacking = pipeline.lacking().length;
  const ending = first.complete ? "complete" : `failed: ${reasonOf(first)}`;
  const happened = `${ending}, ${lacking === 0 ? "every row" : `${lacking} rows to come`}`;
  if (expect === "refused" && first.complete) violations.push("complete where an error was due");
  if (expect === "complete" && !first.complete) violations.push(`not complete: ${reasonOf(first)}`);
  sandbox.fault();
  for (let nth = 0; nth === 0 || (nth < HEALED_RUNS && lacking > 0); nth++) {
    sandbox.advance(nth === 0 ? 5_000 : DAY_MS);
    const before = sandbox.requests.length;
    const healed = await run([]);
    if (!healed.complete) violations.push(`healed run ${nth + 1} is not complete: ${reasonOf(healed)}`);
    const asked = sandbox.requests.length - before;
    if (nth === 0 && asked > mostRequestsHealed) violations.push(`${asked} requests in the healed run`);
    lacking = pipeline.lacking().length;
  }
  if (lacking > 0) violations.push(`${lacking} rows are lacking after ${HEALED_RUNS} healed runs`);
  if (sandbox.requests.length > MOST_REQUESTS) violations.push(`${sandbox.requests.length} requests`);
  if (isLate !== true) violations.unshift(...pipeline.violations);
  return { happened, violations: expect === "residual" ? [] : violations };
}

/** What a reader of the scenario's stream is to have. */
function servedTo(sandbox: Sandbox, scenario: Scenario): readonly Delivered[] {
  const { stream, config, sandbox: options } = scenario;
  if (stream === "companies") {
    const isDated = options?.companiesDated ?? true;
    return sandbox.companies().map(({ domain, discoveredAt = null }) => ({
      id: domain,
      discoveredAt: isDated ? discoveredAt : null,
    }));
  }
  return filtered(sandbox.people(), config?.isUser ?? "all");
}

const reasonOf = ({ error }: Outcome): string => (error instanceof Error ? error.message : String(error));
