import type { Config, JobRules } from "../config.ts";
import type { JsonObject } from "../json.ts";
import { digestOf } from "../source/job-state.ts";
import type { RowCheck } from "../source/row-check.ts";
import type { JobSetting, JobStreamSpec } from "../source/streams.ts";
import type { Lines } from "../sync/event.ts";
import type { Rules } from "../sync/job-moves.ts";
import type { Family } from "../sync/jobs.ts";
import type { Client } from "./client.ts";
import type { Clock } from "./clock.ts";
import { collectCheck, submitCheck } from "./email-checks.ts";
import { submitVerification } from "./email-verifications.ts";
import { probeExternal, probePublic } from "./job-probe.ts";
import { collectLookup, submitLookup } from "./lookups.ts";
import { toRawLine } from "./text.ts";

/** So that state stays small. */
const MOST_ITEMS = 1000;
const DAY = 86_400_000;

/** What the jobs of a run are done with. `companies`: the domains of the companies stream. */
export type Workplace = {
  readonly config: Config;
  readonly publicApi: Client;
  readonly externalApi: Client;
  readonly check: RowCheck;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly companies: () => AsyncIterable<string>;
};

type Own = Pick<Family, "rules" | "setting" | "canBeLost" | "items" | "submit" | "collect">;

/** The kind of job that a stream is made of. */
export function openFamily(spec: JobStreamSpec, workplace: Workplace): Family {
  const { clock, signal, publicApi, externalApi } = workplace;
  const client = spec.setting === "emailCheck" ? publicApi : externalApi;
  return {
    stream: spec.name,
    ...FAMILIES[spec.setting](workplace),
    ready: async () => {
      if (client.knowsTime) return;
      await (client === publicApi ? probePublic(client) : probeExternal(client));
    },
    turn: () => client.turn(),
    rest: (failures) => client.backOff(failures),
    sleep: (ms) => clock.sleep(ms, signal),
    now: () => client.now(),
    monotonic: () => clock.monotonic(),
  };
}

const FAMILIES: Readonly<Record<JobSetting, (workplace: Workplace) => Own>> = {
  companyLookup: lookups,
  emailCheck: checks,
  emailVerification: verifications,
};

/** 1 credit per contact, known only afterwards: few at once, so that a cap is passed by few. */
function lookups({ config, externalApi, check, companies }: Workplace): Own {
  const settings = configured(config.companyLookup);
  const { domains, fromCompanies, maxCreditsPerSync, maxLookupsPerSync, maxWaitSeconds } = settings;
  const rules: Rules = {
    ...commonRules(settings),
    mostInFlight: 3,
    mostSubmissions: Math.min(MOST_ITEMS, maxLookupsPerSync),
    mostCredits: maxCreditsPerSync,
    firstPoll: 5_000,
    longestPoll: 300_000,
    polling: 300_000,
    maxWait: maxWaitSeconds * 1000,
  };
  const buys = maxCreditsPerSync > 0 && rules.mostSubmissions > 0;
  return {
    setting: "company_lookup",
    canBeLost: true,
    rules,
    items: (isSettled) =>
      fromCompanies && buys
        ? withCompanies(domains, companies(), rules.mostSubmissions, isSettled)
        : Promise.resolve(byDigest(domains)),
    submit: (domain) => submitLookup(externalApi, config, domain),
    collect: (jobId) => collectLookup(externalApi, jobId, linesTo(check)),
  };
}

function checks({ config, publicApi, check }: Workplace): Own {
  const settings = configured(config.emailCheck);
  return {
    setting: "email_check",
    canBeLost: false,
    rules: {
      ...commonRules(settings),
      ...UNLIMITED,
      firstPoll: 5_000,
      longestPoll: 60_000,
      polling: Number.POSITIVE_INFINITY,
      maxWait: settings.maxWaitSeconds * 1000,
    },
    items: () => Promise.resolve(byDigest(settings.emails)),
    submit: (email) => submitCheck(publicApi, config, email),
    collect: (jobId) => collectCheck(publicApi, jobId, linesTo(check)),
  };
}

function verifications({ config, externalApi, check }: Workplace): Own {
  const settings = configured(config.emailVerification);
  return {
    setting: "email_verification",
    canBeLost: false,
    rules: { ...commonRules(settings), ...UNLIMITED, firstPoll: 0, longestPoll: 0, polling: 0, maxWait: 0 },
    items: () => Promise.resolve(byDigest(settings.emails)),
    submit: (email) => submitVerification(externalApi, email, linesTo(check)),
    collect: () => Promise.reject(new Error("Cannot collect a verification: it is answered at once")),
  };
}

const UNLIMITED = {
  mostInFlight: Number.POSITIVE_INFINITY,
  mostSubmissions: MOST_ITEMS,
  mostCredits: Number.POSITIVE_INFINITY,
} as const;

function commonRules({
  refreshAfterDays,
  retryUnknown,
}: JobRules): Pick<Rules, "refreshAfter" | "retryUnknown"> {
  return { refreshAfter: refreshAfterDays === null ? null : refreshAfterDays * DAY, retryUnknown };
}

const byDigest = (items: readonly string[]): ReadonlyMap<string, string> =>
  new Map(items.map((item) => [digestOf(item), item]));

/** The domains of the config, then those of companies that are still to be had, as many as one run may submit. */
async function withCompanies(
  domains: readonly string[],
  companies: AsyncIterable<string>,
  most: number,
  isSettled: (key: string) => boolean,
): Promise<ReadonlyMap<string, string>> {
  const items = new Map(byDigest(domains));
  let open = [...items.keys()].filter((key) => !isSettled(key)).length;
  if (open >= most) return items;
  for await (const name of companies) {
    const domain = name.trim().toLowerCase();
    const key = digestOf(domain);
    if (!DOMAIN.test(domain) || items.has(key) || isSettled(key)) continue;
    items.set(key, domain);
    open += 1;
    if (open >= most) break;
  }
  return items;
}

const DOMAIN = /^[^\s@/:]+\.[^\s@/:]+$/;

const linesTo =
  (check: RowCheck) =>
  (records: readonly JsonObject[]): Lines =>
    records.map((record) => {
      const line = toRawLine(record, () => check.noteReplaced());
      check.note(JSON.parse(line));
      return line;
    });

function configured<Settings>(settings: Settings | null): Settings {
  if (settings === null) throw new Error("Cannot open a job stream: it is not configured");
  return settings;
}
