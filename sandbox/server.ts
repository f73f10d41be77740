import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type Account,
  type AccountOptions,
  type Collection,
  openAccount,
  type Plan,
} from "./data/account.ts";
import type { Company } from "./data/companies.ts";
import type { JobOptions, Submitted } from "./data/job-options.ts";
import type { Person } from "./data/people.ts";
import type { SourceRecord } from "./data/sources.ts";
import { fromWire } from "./data/wire-text.ts";
import { FaultBook } from "./faults/fault-book.ts";
import { isKeyShaped, RateLimit } from "./http/access.ts";
import { handle } from "./http/handle.ts";
import { RequestLog, type SandboxRequest } from "./http/request-log.ts";
import type { Service } from "./http/route.ts";

export { describeFaults } from "./faults/faults.ts";

/** The API key that a sandbox accepts when none is chosen. */
export const DEFAULT_KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";

/** The API key of the account with these data, so that a config or a state of other data does not fit by chance. */
export function keyOf(people: number, seed: number): string {
  if (people === DEFAULTS.people && seed === DEFAULTS.seed) return DEFAULT_KEY;
  const digest = createHash("sha256").update(`${people} people of seed ${seed}`).digest("hex");
  return `svc_${digest.slice(0, 8)}_${digest.slice(8, 40)}`;
}

export type SandboxOptions = {
  /** Default 0: any free port. */
  readonly port?: number;
  /** A path under which everything is served, such as `/crm`. */
  readonly basePath?: string;
  /** People with a date; default 1000. */
  readonly people?: number;
  /** People without a date; default 3. */
  readonly undated?: number;
  readonly companies?: number;
  /** Whether company records carry `discoveredAt`; default true. */
  readonly companiesDated?: boolean;
  /** Whether the date filters have an effect on companies; default as `companiesDated`. */
  readonly companyFilters?: boolean;
  /** False: the list of companies answers 404. */
  readonly companyList?: boolean;
  readonly sources?: number;
  readonly seed?: number;
  /** Over how many days before the start people were checked; default 3650. */
  readonly days?: number;
  /** RFC 3339: where the sandbox's clock starts; default now. */
  readonly now?: string;
  /** RFC 3339: the moment before which all people with a date were checked; default: where the clock starts. */
  readonly newest?: string;
  readonly key?: string;
  readonly plan?: Plan;
  /** Default 0: no limit. */
  readonly requestsPerMinute?: number;
  /** Slugs that the organization has access to; default all. */
  readonly allowedSources?: readonly string[];
  readonly faults?: readonly string[];
  /** How long every request waits before anything is done with it. */
  readonly latencyMs?: number;
  /** The speed of every response. */
  readonly bytesPerSecond?: number;
  /** The largest page that the lists serve, whatever was asked; default 1000. */
  readonly pageCap?: number;
  /** The External API's key; default the same as `key`. */
  readonly externalKey?: string;
  readonly jobs?: JobOptions;
};

export type Sandbox = {
  readonly url: string;
  readonly key: string;
  readonly port: number;
  /** The latest requests, oldest first. */
  readonly requests: readonly SandboxRequest[];
  /** Every submission that was taken, oldest first: what a real service would charge for. */
  readonly submissions: readonly Submitted[];
  /** Everyone whom the service would serve now, newest first: for small accounts. */
  people(): Person[];
  companies(): Company[];
  sources(): SourceRecord[];
  /** `count` people with a date are checked again, now; `isUser` says what is found, else it is what it was. */
  recheck(count: number, options?: { readonly isUser?: boolean }): void;
  /** `count` new people are discovered, now; `undated`: without a date. */
  arrive(count: number, options?: { readonly undated?: boolean }): void;
  /** Credits that are left for look-ups. */
  credits(): number;
  /** Every job is gone. */
  forgetJobs(): void;
  /** Moves the clock. */
  advance(ms: number): void;
  /** How many requests each active fault has struck, in their order. */
  strikes(): readonly number[];
  /** Replaces the active faults. */
  fault(...expressions: string[]): void;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Starts the sandbox on this machine's loopback address. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { port = 0, basePath = "", key = DEFAULT_KEY, latencyMs = 0 } = options;
  if (!isKeyShaped(key))
    throw new RangeError("Cannot start the sandbox: the key is not like svc_{8 hex}_{32 hex}");
  const account = openAccount(accountOptions(options));
  const faults = new FaultBook(options.faults ?? []);
  const limit = new RateLimit(options.requestsPerMinute ?? 0);
  const external = externalOf(options, key, limit);
  const service: Service = { account, key, limit, external, faults, bytesPerSecond: options.bytesPerSecond };
  const log = new RequestLog(key);
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    void handle({ service, log, basePath, latencyMs }, request, response);
  });
  const bound = await listen(server, port);
  const close = (): Promise<void> => shut(server);
  return {
    url: `http://127.0.0.1:${bound}${basePath}`,
    key,
    port: bound,
    requests: log.entries,
    submissions: account.jobs.submitted,
    ...controls(account),
    strikes: () => faults.strikes,
    fault: (...expressions) => faults.replace(expressions),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A key of its own has a limit of its own. */
function externalOf(
  { externalKey, requestsPerMinute = 0 }: SandboxOptions,
  key: string,
  limit: RateLimit,
): Service["external"] {
  if (externalKey === undefined || externalKey === key) return { key, limit };
  return { key: externalKey, limit: new RateLimit(requestsPerMinute) };
}

const DEFAULTS = {
  people: 1000,
  undated: 3,
  companies: 50,
  companiesDated: true,
  companyList: true,
  sources: 5,
  seed: 1,
  days: 3650,
  plan: "enterprise",
  allowedSources: undefined,
  pageCap: 1000,
  jobs: {},
} as const;

function accountOptions(options: SandboxOptions): AccountOptions {
  const { now, newest, companiesDated: companyFilters = true } = options;
  return { ...DEFAULTS, companyFilters, ...options, now: momentOf(now), newest: momentOf(newest) };
}

function momentOf(text: string | undefined): number | undefined {
  const moment = text === undefined ? undefined : Date.parse(text);
  if (Number.isNaN(moment)) throw new RangeError(`Cannot start the sandbox: "${text}" is not a date-time`);
  return moment;
}

type Controls = Pick<
  Sandbox,
  "people" | "companies" | "sources" | "recheck" | "arrive" | "advance" | "credits" | "forgetJobs"
>;

function controls({ clock, people, companies, sources, membership, jobs }: Account): Controls {
  let rechecks = 0;
  return {
    people: () => records<Person>(people),
    companies: () => records<Company>(companies),
    sources: () => [...sources],
    recheck: (count, { isUser } = {}) => {
      const phase = (0.5 + 0.618 * rechecks++) % 1;
      for (const { index, usageSlot } of people.dataset.choose({}, count, phase)) {
        people.dataset.check(
          index,
          clock.now(),
          isUser === undefined ? usageSlot : membership.slotFor(isUser),
        );
      }
    },
    arrive: (count, { undated = false } = {}) => people.dataset.arrive(count, undated ? null : clock.now()),
    advance: (ms) => {
      clock.advance(ms);
      jobs.lookups.settle();
    },
    credits: () => jobs.lookups.credits,
    forgetJobs: () => {
      jobs.lookups.forget();
      jobs.checks.forget();
    },
  };
}

function records<T>({ dataset, write }: Collection): T[] {
  return Array.from(dataset.rows({}), (row): T => JSON.parse(fromWire(write(row))));
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function shut(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
