import type { Sandbox, SandboxOptions } from "../../../sandbox/server.ts";
import type { StreamState } from "../../../src/sync/event.ts";
import { Dice } from "../fuzz/dice.ts";
import { FAULTS_TRIED } from "./fault-matrix.ts";
import { filtered, Pipeline } from "./invariants.ts";
import { fastClock, labConfig, type Outcome, patienceFor, readOnce, withSandbox } from "./read-once.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const CALM_RUNS = 3;
/** Where every export is broken for ever, each day costs its five tries and its pages. */
const MOST_REQUESTS = 20_000;

/**
 * Several runs of one connection: faults, kills, clocks that jump, people who move; then calm runs that must have all.
 * Returns the promises that were broken. All of it is the work of the seed.
 */
export function playPipeline(seed: number): Promise<readonly string[]> {
  const roll = new Dice(seed);
  const options: SandboxOptions = {
    people: roll.pick([0, 1, 40, 200, 200, 400]),
    undated: roll.pick([0, 0, 1, 7]),
    days: roll.pick([1, 3, 30, 90, 700]),
    companies: 5,
    pageCap: roll.pick([10, 100, 1000]),
    now: new Date(Date.parse("2026-03-20T00:00:00Z") + roll.below(DAY)).toISOString(),
    seed,
  };
  return withSandbox(options, (sandbox) => playRuns(roll, sandbox));
}

async function playRuns(roll: Dice, sandbox: Sandbox): Promise<readonly string[]> {
  const config = labConfig(sandbox, {
    maxWindowRows: roll.pick([1, 20, 60, 1_000]),
    numWorkers: 1 + roll.below(8),
    lookbackWindowDays: roll.pick([1, 1, 2, 10]),
    isUser: roll.pick(["all", "all", "true", "false"]),
  });
  const served = () => filtered(sandbox.people(), config.isUser);
  const pipeline = new Pipeline(sandbox, served, config.isUser === "all");
  const { violations } = pipeline;
  for (let runs = 1 + roll.below(5); runs > 0; runs--) {
    const before = sandbox.requests.length;
    const faults = Array.from({ length: roll.below(4) }, () => randomFault(roll));
    const isKilled = roll.below(2) === 0;
    const hasty = { ...config, idleTimeoutSeconds: patienceFor(faults) };
    const clock = fastClock(roll.pick([0, 0, 0, HOUR, -HOUR, 30 * DAY]));
    const stopAfter = isKilled ? 1 + roll.below(roll.pick([4, 12, 40])) : Number.POSITIVE_INFINITY;
    const name = `(${faults.join(" ")}${isKilled ? ", killed" : ""}): `;
    const read = (state: StreamState | null): Promise<Outcome> =>
      readOnce({ config: hasty, clock, stopAfter, state });
    sandbox.fault(...faults);
    const settle = meddle(sandbox, new Dice(roll.below(2 ** 30)));
    await pipeline.run(read, name).finally(settle);
    sandbox.fault();
    const asked = sandbox.requests.length - before;
    if (asked > MOST_REQUESTS) violations.push(`${asked} requests in a run`);
    sandbox.advance(roll.pick([0, 1_000, HOUR, 11 * HOUR, DAY, 3 * DAY]));
  }
  // Without faults a run must be complete, and after the third of them, a day apart, everything must have arrived.
  for (let run = 1; run <= CALM_RUNS && (run === 1 || pipeline.lacking().length > 0); run++) {
    sandbox.advance(run === 1 ? 5_000 : DAY);
    const name = `calm run ${run}: `;
    const { complete, error } = await pipeline.run((state) => readOnce({ config, state }), name);
    if (!complete) violations.push(`${name}not complete: ${String(error)}`);
  }
  const [lacking] = pipeline.lacking();
  if (lacking !== undefined) violations.push(`Rows are lacking at the end, as ${JSON.stringify(lacking)}`);
  return violations;
}

/** People move and arrive, and now and then midnight passes, all while a run goes on. */
function meddle(sandbox: Sandbox, roll: Dice): () => void {
  const pace = roll.pick([0, 0, 3, 20]);
  if (pace === 0) return () => {};
  let left = 1 + roll.below(60);
  const timer = setInterval(() => {
    if (left-- <= 0) return;
    const kind = roll.below(10);
    if (kind < 5) sandbox.recheck(1 + roll.below(3));
    else if (kind < 8) sandbox.arrive(1 + roll.below(3), { undated: roll.below(4) === 0 });
    else if (kind < 9) sandbox.recheck(1, { isUser: roll.below(2) === 0 });
    else sandbox.advance(roll.pick([1_000, 60_000, HOUR]));
  }, pace);
  return () => clearInterval(timer);
}

/**
 * Left out: what no rule can see through (totals that agree with losses, rows that are nowhere yet, filters that hold for
 * some requests only, rows that enter a closed day late, a replica that lags, dates that nobody can read, clocks that are hours
 * wrong).
 */
const BLIND =
  /^(count|hide|filters-ignored|redate|keyless|early-hints|lag|twins)\b|unreadable|lists=too|behind=-?\d{4}/;
/** Answers that take their time on a real clock. */
const SLOW = /^(stall|drip|long-line|endless|gzip-bomb|export-limit)/;
/** What the fault matrix tries, wherever and however often. */
const KNOWN = [
  ...new Set(FAULTS_TRIED.map((fault) => fault.replace(/:(times|skip|after|from|to)=[^:]*/g, ""))),
];
const POSSIBLE = KNOWN.filter((fault) => !BLIND.test(fault));

function randomFault(roll: Dice): string {
  const fault = roll.pick(POSSIBLE);
  const times = SLOW.test(fault) ? 1 : roll.pick(["1", "1", "2", "5", "always"]);
  const skip = roll.pick([0, 0, 1, 5, 20]);
  const after = roll.pick(["", "", ":after=0", ":after=1", ":after=all"]);
  return `${fault}:times=${times}:skip=${skip}${after}`;
}
