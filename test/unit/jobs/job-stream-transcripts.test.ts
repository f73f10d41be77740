import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { TransientError } from "../../../src/base/errors.ts";
import { type JobStreamSpec, jobSpecsOf } from "../../../src/catalog/streams.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { type Jobs, type Lent, openJobs, type SelectedJobs } from "../../../src/jobs/jobs.ts";
import { Suppression } from "../../../src/privacy/suppress.ts";
import type { Client } from "../../../src/service/client.ts";
import type { Row, Service } from "../../../src/sync/service.ts";
import { tempDir } from "../../support/temp-dir.ts";

const DAY = 86_400_000;
const API = { base_url: "https://a.example", api_key: "k" };
const EXTERNAL = { external_api: { api_url: "https://x.example", api_key: "k" } };

type Sync = {
  /** The streams in the order of their turns: how each is asked for, and what the platform numbers. */
  readonly streams: readonly (readonly [name: string, mode?: "full_refresh" | "incremental", ids?: object])[];
  /** Ms after the sync before. */
  readonly after?: number;
  readonly isForgotten?: boolean;
  readonly rows?: Readonly<Record<string, readonly object[]>>;
  /** The call at which another run has taken the state. */
  readonly lostAt?: number;
  readonly changes?: Partial<Lent>;
  /** Whether no answer has said what time it is. */
  readonly isTimeUnknown?: boolean;
};

type Story = {
  readonly settings: object;
  readonly suppressed?: readonly string[];
  readonly syncs: readonly Sync[];
};

let folder = "";
beforeEach(async () => {
  folder = await tempDir();
});

const byId = (sync_id: number | null, generation: number | null, least = 0) => ({
  ...{ syncId: sync_id, generationId: generation, minimumGenerationId: least },
});
const LOOKUPS = { company_lookup: { domains: ["a.example", "b.example", "c.example"] } };
const BOTH = [["company_lookups"], ["company_lookup_contacts"]] as const;
const PEOPLE = [
  { companyDomain: "p.example", email: "one@x.example" },
  { companyDomain: "held.example", email: "held@x.example", isSuppressed: true },
  { companyDomain: 5, email: null },
  {},
];
const COMPANIES = [{ domain: "c.example", email: "two@x.example" }];

const STORIES: Readonly<Record<string, Story>> = {
  "asks once for what both streams deliver, and buys nothing twice": {
    settings: LOOKUPS,
    syncs: [{ streams: BOTH }, { streams: BOTH, after: DAY }, { streams: BOTH, isForgotten: true }],
  },
  "reads one stream without the other, and nothing of another setting": {
    settings: {
      company_lookup: { domains: ["a.example"], from_people: true },
      email_verification: { emails: ["e@x.example"] },
    },
    syncs: [
      { streams: [["company_lookup_contacts"]], rows: { people: PEOPLE } },
      { streams: BOTH, rows: { people: PEOPLE } },
      { streams: [["company_lookups"]], rows: { people: [{ companyDomain: "q.example" }] } },
    ],
  },
  "delivers what rows name and receipts know on a day on which nothing more may be bought": {
    settings: { email_verification: { emails: [], from_people: true, max_per_day: 1 } },
    syncs: [
      { streams: [["email_verifications"]], rows: { people: PEOPLE } },
      { streams: [["email_verifications"]], rows: { people: PEOPLE }, isForgotten: true },
    ],
  },
  "does not call a refresh complete whose list could not be read, in the turn of either stream": {
    settings: { company_lookup: { domains: ["a.example"], domains_file: "/not/there.csv" } },
    syncs: [
      { streams: BOTH },
      { streams: BOTH.map(([name]) => [name, "incremental", byId(7, 1, 1)] as const) },
    ],
  },
  "says that a refresh is not complete where rows name nobody, unless they name who is suppressed": {
    settings: { company_lookup: { domains: [], from_people: true } },
    suppressed: ["s.example"],
    syncs: [
      { streams: [["company_lookups", "incremental", byId(7, 1, 1)]], rows: { people: [{}] } },
      {
        streams: [["company_lookups", "incremental", byId(8, 2, 2)]],
        rows: { people: [{ companyDomain: "s.example" }] },
      },
    ],
  },
  "buys nothing in a full refresh, and then in the turn of the other stream": {
    settings: LOOKUPS,
    syncs: [
      { streams: [["company_lookups", "full_refresh"]] },
      { streams: [["company_lookups", "full_refresh"], ["company_lookup_contacts"]] },
      {
        streams: [
          ["company_lookups", "full_refresh"],
          ["company_lookup_contacts", "full_refresh"],
        ],
      },
    ],
  },
  "counts all tries of one sync under its caps": {
    settings: {
      company_lookup: { domains: ["a.example", "b.example", "c.example"], max_lookups_per_sync: 1 },
    },
    syncs: [
      { streams: [["company_lookups", "incremental", byId(7, 0)]] },
      { streams: [["company_lookups", "incremental", byId(7, 0)]] },
      { streams: [["company_lookups", "incremental", byId(8, 0)]] },
      { streams: [["company_lookups", "incremental", byId(null, 0)]] },
    ],
  },
  "delivers again what a generation lacks, of which the platform drops the one before": {
    settings: LOOKUPS,
    syncs: [
      { streams: [["company_lookups", "incremental", byId(1, 0)]] },
      { streams: [["company_lookups", "incremental", byId(2, 1, 1)]] },
      { streams: [["company_lookups", "incremental", byId(3, 1, 1)]] },
      { streams: [["company_lookups", "incremental", byId(4, 2)]] },
    ],
  },
  "takes the numbers of PyAirbyte, which are always 1, for none": {
    settings: { company_lookup: { domains: ["a.example", "b.example"], max_lookups_per_sync: 1 } },
    syncs: [
      { streams: [["company_lookups", "incremental", byId(1, 1, 1)]] },
      { streams: [["company_lookups", "incremental", byId(1, 1, 1)]] },
    ],
  },
  "looks up what the rows of both streams name, and later the rows since": {
    settings: { company_lookup: { domains: [], from_people: true, from_companies: true }, sources: ["crm"] },
    syncs: [
      { streams: BOTH, rows: { people: PEOPLE, companies: COMPANIES } },
      {
        streams: BOTH,
        after: 5 * DAY,
        rows: { people: [{ companyDomain: "q.example" }], companies: COMPANIES },
      },
      { streams: BOTH, isForgotten: true, rows: { people: PEOPLE, companies: COMPANIES } },
      { streams: [["company_lookups", "full_refresh"]], rows: { people: PEOPLE, companies: [] } },
    ],
  },
  "looks at all rows where items may be bought anew": {
    settings: { email_verification: { emails: [], from_people: true, refresh_after_days: 30 } },
    syncs: [
      { streams: [["email_verifications"]], rows: { people: PEOPLE } },
      { streams: [["email_verifications"]], after: 5 * DAY, rows: { people: PEOPLE } },
    ],
  },
  "looks at all rows where lost submissions are sent again": {
    settings: { email_check: { emails: [], from_people: true, retry_unknown: true } },
    syncs: [
      { streams: [["email_checks"]], rows: { people: PEOPLE } },
      { streams: [["email_checks"]], after: DAY, rows: { people: PEOPLE } },
    ],
  },
  "keeps back who is suppressed, in lists, rows and answers": {
    settings: { company_lookup: { domains: ["a.example", "held.example", "b.example"], from_people: true } },
    suppressed: ["held.example", "held@a.example", "ann@b.example"],
    syncs: [{ streams: BOTH, rows: { people: PEOPLE } }],
  },
  "hides repeats of an item whose field is hashed": {
    settings: { company_lookup: { domains: ["a.example"] }, email_verification: { emails: ["e@x.example"] } },
    syncs: [
      {
        streams: [...BOTH, ["email_verifications"]],
        changes: {
          echoOf: (stream, field) =>
            stream === BOTH[1][0] ? null : (text) => `<${field} of ${text.length}>`,
        },
      },
    ],
  },
  "submits nothing once another run has the state": {
    settings: LOOKUPS,
    syncs: [
      { streams: BOTH, lostAt: 1 },
      { streams: BOTH, lostAt: 2 },
      { streams: BOTH, lostAt: 4 },
      { streams: BOTH },
    ],
  },
  "asks for the time where no answer has said it yet": {
    settings: { ...LOOKUPS, email_check: { emails: ["e@x.example"] } },
    syncs: [{ streams: [["company_lookups"], ["email_checks"]], isTimeUnknown: true }],
  },
};

/** What the jobs ask of both APIs and of the rows, and what they say, sync by sync. */
async function told({ settings, suppressed = [], syncs }: Story, receipts_file: string): Promise<string> {
  const config = {
    ...parseConfig({ ...API, ...EXTERNAL, receipts_file, ...settings }, {}),
    suppressed: new Suppression(suppressed.map((name) => [name])),
  };
  const lines: string[] = [];
  const log = (text: string): void => void lines.push(`  ${text}`);
  const states = new Map<string, unknown>();
  const jobs = new Map<string, string>();
  let now = Date.UTC(2026, 2, 2, 10);
  for (const [nth, sync] of syncs.entries()) {
    lines.push(`Sync ${nth + 1}`);
    now += sync.after ?? 0;
    if (sync.isForgotten === true) states.clear();
    // Submissions that are under way at once take their turns.
    let turn: Promise<void> = Promise.resolve();
    let endTurn = (): void => {};
    let [calls, knowsTime] = [0, sync.isTimeUnknown !== true];
    const clientOf = (name: string): Client => {
      const client: Partial<Client> = {
        now: () => now,
        requestSlot: async () => {
          const before = turn;
          let end = (): void => {};
          turn = new Promise((resolve) => {
            end = resolve;
          });
          await before;
          endTurn = end;
        },
        backOff: async () => {},
        refusal: (what, status) => new TransientError(`Cannot ${what}: ${status}`),
        post: async (_what, path, body) => {
          const item = Object.values(body as object).join();
          const id = `job_${jobs.size}`;
          jobs.set(id, item);
          endTurn();
          log(`${name}: POST ${path} ${JSON.stringify(body)}`);
          return {
            kind: "answered",
            status: 200,
            value: { job_id: id, status: "valid", note: `of ${item}` },
            answered: now,
          };
        },
        ask: async (_what, path, _isResult, read) => {
          log(`${name}: GET ${path}`);
          knowsTime = true;
          const item = jobs.get(path.match(/job_\d+/)?.[0] ?? "") ?? "";
          const contacts = ["ann", "held"].map((one) => ({ email: `${one}@${item}`, note: `at ${item}` }));
          const lookup = {
            domain: item,
            contacts,
            status: "success",
            created_at: new Date(now).toISOString(),
          };
          const check = { email: item, status: "completed", sources: { crm: { is_user: true } } };
          const answer = read(200, item.includes("@") ? check : lookup, { bytes: 0, credits: null } as never);
          if (answer === undefined) throw new Error("It is no answer");
          return answer;
        },
      };
      return Object.defineProperty(client, "knowsTime", { get: () => knowsTime }) as Client;
    };
    const lent: Lent = {
      publicApi: clientOf("public"),
      externalApi: clientOf("external"),
      environment: {},
      signal: new AbortController().signal,
      pid: process.pid,
      endsAt: Number.POSITIVE_INFINITY,
      checkState: async () => {
        calls += 1;
        if (calls < (sync.lostAt ?? Number.POSITIVE_INFINITY)) return;
        endTurn();
        throw new TransientError("Another run has the state");
      },
      streamApi: ({ name }, rules) => {
        log(`rows of ${name}: ordered by ${rules.cursor}`);
        return rowsOf(name, sync.rows?.[name] ?? [], log);
      },
      filtersOf: ({ name }) => ({ of: name }),
      echoOf: () => null,
      notify: (text) => log(`told: ${text}`),
      ...sync.changes,
      clock: {
        now: () => now,
        monotonic: () => now,
        sleep: async (ms) => {
          now += ms;
        },
      },
    };
    const selected = sync.streams.map(([name, syncMode = "incremental", ids = {}]) => {
      return { name, syncMode, ...ids } as SelectedJobs;
    });
    const opened = await openJobs(config, selected, states, lent);
    for (const { name } of selected) {
      const spec = jobSpecsOf(config).find((one) => one.name === name) as JobStreamSpec;
      await readAll(opened, spec, states, log);
    }
    await opened.close();
  }
  if (receipts_file !== "") {
    const [header, ...news] = (await readFile(receipts_file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    log(`The receipts are about ${Object.keys(header.service)}`);
    log(`Refreshes that began blind: ${JSON.stringify(news.flatMap(({ blind = [] }) => blind))}`);
  }
  return lines.join("\n");
}

async function readAll(
  jobs: Jobs,
  spec: JobStreamSpec,
  states: Map<string, unknown>,
  log: (text: string) => void,
) {
  try {
    for await (const event of jobs.read(spec, null)) {
      if (event.kind === "checkpoint") states.set(spec.name, JSON.parse(JSON.stringify(event.state)));
      else if (event.kind === "records") {
        for (const line of event.lines) log(line);
        log(`${spec.name}: ${event.lines.length} records, ${JSON.stringify(event.facts)}`);
      } else if (event.kind === "log") log(`${event.level}: ${event.text}`);
      else log(JSON.stringify(event));
    }
  } catch (error) {
    log(String(error));
  }
  const { inputs = [], generation } = (states.get(spec.name) ?? {}) as {
    inputs?: readonly object[];
    generation?: number;
  };
  log(`${spec.name} is of generation ${generation}, and has looked at ${JSON.stringify(inputs)}`);
}

function rowsOf(name: string, rows: readonly object[], log: (text: string) => void): Service {
  const api: Partial<Service> = {
    monotonic: () => 0,
    count: async (window) => {
      log(`count of ${name}: ${JSON.stringify(window)}`);
      return { rows: rows.length - 1, undated: 1, known: rows.length > 0, asked: 0, answered: 0 };
    },
    stream: async function* (window) {
      log(`rows of ${name}: ${JSON.stringify(window)}`);
      yield { rows: rows.map((row, nth) => ({ key: `${nth}`, cursor: null, ...rowOf(row) }) as Row) };
    },
  };
  return api as Service;
}

const rowOf = ({ isSuppressed, ...row }: { readonly isSuppressed?: boolean }) => ({
  raw: JSON.stringify(row),
  isSuppressed,
});

describe("openJobs()", () => {
  /** After a change that is meant: `npx vitest run test/unit/jobs/job-stream-transcripts.test.ts -u`, and read what it changed. */
  it("reads streams like this, with receipts and without", async () => {
    const parts: string[] = [];
    for (const [nth, [name, story]] of Object.entries(STORIES).entries())
      for (const receipts of [join(folder, `receipts-${nth}.jsonl`), ""])
        parts.push(
          `# ${name}${receipts === "" ? ", without receipts" : ""}`,
          await told(story, receipts),
          "",
        );
    await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/job-stream-transcripts.txt");
  });

  it("reads no stream that was not selected", async () => {
    const config = parseConfig({ ...API, ...EXTERNAL, receipts_file: "", ...LOOKUPS }, {});
    const opened = await openJobs(
      config,
      [{ name: "company_lookups", syncMode: "incremental" }],
      new Map(),
      {} as Lent,
    );
    const [, contacts] = jobSpecsOf(config);
    expect(() => opened.read(contacts as JobStreamSpec, null)).toThrow(
      'Cannot open the stream "company_lookup_contacts"',
    );
    await opened.close();
  });
});
