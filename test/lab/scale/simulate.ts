import { NEW_STATE } from "../../../src/streams/dated-state.ts";
import { planWindows } from "../../../src/streams/plan.ts";
import { measureDays } from "../../../src/streams/range.ts";
import { WindowSize } from "../../../src/streams/window-size.ts";
import type { Day } from "../../../src/time.ts";
import { cutAll } from "../../support/cut-all.ts";
import { rulesWith } from "../../support/run-rules.ts";
import { SETTINGS } from "../../support/sync-run.ts";
import { Account, accountApi, type Spread } from "./account.ts";

/** What one process of the connector can pass on (rows a second), as docs/benchmarks.md measures it. */
const CONNECTOR_ROWS_PER_SECOND = 250_000;
const WORKERS = 2;
/** The service's limit for each key. */
const REQUESTS_PER_MINUTE = 60;
/** What a process needs before it remembers any row (MiB), and bytes for each row that it remembers. */
const BASE_MIB = 135;
const BYTES_PER_ROW = 16;
const MOST_REMEMBERED = 5_000_000;

export type Scenario = {
  readonly people: number;
  readonly spread: Spread;
  readonly shards: number;
  /** What the service streams on one connection. */
  readonly rowsPerSecond: number;
};

export type Load = {
  readonly requests: number;
  readonly hours: number;
  /** What the hours are spent on. */
  readonly binds: "quota" | "service" | "connector";
  readonly windows: number;
  /** Ranges that people left while they were read, which the next run checks again. */
  readonly rechecks: number;
  readonly mebibytes: number;
  readonly stateBytes: number;
};

/** Plays a first load with the connector's own planner against an account at the level of counts. */
export async function simulate({ people, spread, shards, rowsPerSecond }: Scenario): Promise<Load> {
  const { parts, requests: planning } = await cut(people, spread, shards);
  const loads: PartLoad[] = [];
  for (const part of parts) loads.push(await loadPart(part, new Account(people, spread), rowsPerSecond));
  const requests = planning + sum(loads.map((load) => load.requests));
  const seconds = {
    quota: (requests / REQUESTS_PER_MINUTE) * 60,
    service: Math.max(...loads.map((load) => load.rows / load.parallel)) / rowsPerSecond,
    connector: Math.max(...loads.map((load) => load.rows)) / CONNECTOR_ROWS_PER_SECOND,
  };
  const binds = (["quota", "service", "connector"] as const).toSorted((a, b) => seconds[b] - seconds[a])[0];
  const rechecks = sum(loads.map((load) => load.rechecks.length));
  const remembered = Math.max(...loads.map((load) => load.largest)) * WORKERS;
  return {
    requests,
    hours: seconds[binds ?? "quota"] / 3600,
    binds: binds ?? "quota",
    windows: sum(loads.map((load) => load.windows)),
    rechecks,
    mebibytes: Math.round(BASE_MIB + (Math.min(remembered, MOST_REMEMBERED) * BYTES_PER_ROW) / 1_048_576),
    stateBytes: JSON.stringify({
      ...NEW_STATE,
      days: loads.flatMap((load) => load.rechecks).map((days) => [...days, null, "again"]),
    }).length,
  };
}

type Part = { readonly from: Day | null; readonly to: Day | null };
type PartLoad = {
  requests: number;
  rows: number;
  windows: number;
  largest: number;
  /** Windows that are read at once, on average. */
  parallel: number;
  rechecks: (readonly [Day, Day])[];
};

/** The shards of an account, and how many requests cut it. */
export async function cut(
  people: number,
  spread: Spread,
  shards: number,
): Promise<{ readonly parts: readonly Part[]; readonly requests: number }> {
  if (shards === 1) return { parts: [{ from: null, to: null }], requests: 0 };
  const account = new Account(people, spread);
  const parts = await cutAll(accountApi(account), { from: null, to: null }, shards);
  return { parts, requests: account.requests };
}

async function loadPart(part: Part, account: Account, rowsPerSecond: number): Promise<PartLoad> {
  const api = accountApi(account);
  const settings = { ...SETTINGS, startDate: part.from, endDate: part.to, numWorkers: WORKERS };
  const range = await measureDays(NEW_STATE, settings, api);
  const windowSize = new WindowSize(SETTINGS.maxWindowRows);
  const rules = rulesWith({ api, yesterday: range.yesterday, windowSize });
  const load: PartLoad = { requests: 0, rows: 0, windows: 0, largest: 0, parallel: 1, rechecks: [] };
  for await (const { window } of planWindows(range, rules)) {
    const rows = account.rows(window);
    const seconds = rows / rowsPerSecond + 0.2;
    account.requests += 1;
    account.seconds += seconds / WORKERS;
    windowSize.measure(rows, seconds * 1000);
    load.rows += rows;
    load.windows += 1;
    load.largest = Math.max(load.largest, rows);
    if (window.kind !== "closed" || account.rows(window) >= rows) continue;
    account.requests += 1;
    load.rechecks.push([window.from, window.to]);
  }
  load.parallel = Math.min(WORKERS, Math.max(1, load.rows / Math.max(1, load.largest)));
  load.requests = account.requests;
  return load;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
