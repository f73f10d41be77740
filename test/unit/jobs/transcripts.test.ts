import { expect, it } from "vitest";
import { STREAMS } from "../../../src/catalog/streams.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { entriesOf } from "../../../src/config/items.ts";
import { Suppression } from "../../../src/config/suppress.ts";
import { ConfigError, DataError, TransientError } from "../../../src/errors.ts";
import { type InputOptions, Inputs } from "../../../src/jobs/inputs.ts";
import type { JobContext, JobTask } from "../../../src/jobs/job-run.ts";
import type { Answer, JobReply, JobType, Refusal, Submission } from "../../../src/jobs/job-type.ts";
import { jobTypeOf } from "../../../src/jobs/kinds.ts";
import { UNBOUGHT } from "../../../src/jobs/lattice.ts";
import { readJobs } from "../../../src/jobs/run.ts";
import { seal } from "../../../src/jobs/seal.ts";
import { parseJobState, tellBook } from "../../../src/jobs/state.ts";
import type { Event } from "../../../src/streams/event.ts";
import { dayOf } from "../../../src/time.ts";
import { dice } from "../../support/dice.ts";
import { CAPS, DAY, JobService, type RunOptions, Tape } from "../../support/job-model.ts";
import { digestOf } from "../../support/stories.ts";

/** What the service does with submissions, and what it says when it is asked; see `JobService`. */
const [TAKEN, LOST, DROPPED, LATER] = [0, 3, 4, 5];
const [READY, FAILED, PENDING, QUEUED, UNUSABLE, DENIED, SILENT] = [0, 2, 3, 4, 5, 6, 7];
const FATES_OF_QUESTIONS = 8;
const HOUR = DAY / 24;
const MINUTE = HOUR / 60;
const [LOOKUPS, CONTACTS, CHECKS, VERIFICATIONS] = STREAMS.slice(3) as unknown as [Spec, Spec, Spec, Spec];

type Spec = JobTask["spec"];

type Situation = RunOptions & {
  readonly items: number;
  /** What becomes of the next submissions, and of the next questions; when these end, all goes well. */
  readonly submitted?: readonly number[];
  readonly asked?: readonly number[];
  /** How long (ms) a job takes. */
  readonly takes?: number;
  readonly prices?: readonly number[];
  /** Ms before each run. */
  readonly runs?: readonly number[];
  /** How long (ms) it takes to write a state. */
  readonly stateTakes?: number;
  /** What else becomes of submissions, and what else is said of jobs, in order; when these end, the fates above follow. */
  readonly submissions?: readonly (Submission | "throws" | undefined)[];
  readonly replies?: readonly (JobReply | ((now: number) => JobReply) | "throws" | undefined)[];
  /** What the context of each run has instead. */
  readonly changes?: (context: JobContext, run: Run) => Partial<JobContext>;
  /** Whether the setting's other stream has its turn in the same run. */
  readonly hasSecond?: boolean;
};

type Run = {
  readonly nth: number;
  readonly service: JobService;
  readonly states: ReadonlyMap<string, unknown>;
  /** Adds a line to the transcript. */
  log(text: string): void;
};

const times = <Fate>(many: number, ...fates: readonly Fate[]): Fate[] => Array(many).fill(fates).flat();
const capped = (submissions: object, credits: object = {}) => ({
  caps: {
    submissions: { ...CAPS.submissions, ...submissions },
    credits: { ...CAPS.credits, ...credits },
  },
});

/** Requests that wait so long (ms) for their turn. */
const turnsAfter =
  (ms: number) =>
  ({ client }: JobContext, { service }: Run): Partial<JobContext> => {
    const requestSlot = async (): Promise<void> => {
      service.now += ms;
    };
    return { client: { ...client, requestSlot } };
  };

/** What answers, refusals and the like are in short. */
const DRY = { failed: true, cost: 0, code: "INSUFFICIENT_CREDITS" };

function answer(domain: unknown, fields: Partial<Answer> = {}): JobReply {
  const value = { domain, status: "success" };
  const plain = {
    value,
    cursor: "2026-03-01T10:00:00.000Z",
    cost: 1,
    failed: false,
    code: null,
    sources: [],
  };
  return { kind: "answered", answer: { ...plain, ...fields } };
}

function withContacts(name: string): JobReply {
  const domain = `${name}.example`;
  return answer(domain, {
    value: { domain, created_at: "2026-03-01", contacts: [{ name: "A" }, { name: "B" }] },
  });
}

const overlong = (cost: number | null): JobReply => {
  const code = "an answer of 33 MiB";
  return { kind: "known", error: new DataError(`Cannot collect it: ${code}`), code, cost };
};

const unusable = (isRetryable: boolean, nth = 0): JobReply => {
  return {
    kind: "unusable",
    error: new TransientError(`Cannot read it: ${nth}`),
    code: "nonsense",
    isRetryable,
  };
};

const silent = (nth: number): JobReply => {
  return { kind: "silent", error: new TransientError(`No answer: ${nth}`), code: "no answer" };
};

const refused = (why: Refusal, code = why.toUpperCase()): Submission => {
  return { kind: "refused", error: new ConfigError(`Cannot submit it: ${why}`), why, code };
};

const pendingFor =
  (ms: number) =>
  (now: number): JobReply => ({ kind: "pending", notBefore: now + ms });

/** Resolves, but for one call (from 1) and those after it. */
function failsAt(nth: number, text: string): () => Promise<void> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (nth > 0 && calls >= nth) throw new TransientError(text);
  };
}

/** The first run is told to stop when it has asked so often. */
const stoppedAfter =
  (asked: number): NonNullable<Situation["changes"]> =>
  ({ client, clock }, { nth }) => {
    if (nth > 0) return {};
    const stop = new AbortController();
    let count = 0;
    const sleep: JobContext["clock"]["sleep"] = async (ms) => {
      if (asked === 0) stop.abort(new Error("Stopped"));
      stop.signal.throwIfAborted();
      await clock.sleep(ms);
    };
    const ask: JobContext["client"]["ask"] = async (job) => {
      count += 1;
      if (count === asked) stop.abort(new Error("Stopped"));
      return await client.ask(job);
    };
    return { signal: stop.signal, clock: { ...clock, sleep }, client: { ...client, ask } };
  };

function inputsOf({ type, book, task, client }: JobContext, options: Partial<InputOptions> = {}): Inputs {
  return new Inputs({
    ...{ type, book, stream: task.spec.name, now: () => client.now() },
    ...{ sources: [], readsAll: false, suppressed: new Suppression([]), ...options },
  });
}

function withRules(context: JobContext, resubmitRules: JobType["resubmitRules"]): Partial<JobContext> {
  const type = { ...context.type, resubmitRules };
  return { type, inputs: inputsOf({ ...context, type }) };
}

const rowsOf = (
  { log }: Run,
  ...batches: readonly (readonly string[])[]
): InputOptions["sources"][number] => ({
  ...{ from: "people", isDated: true, filters: "" },
  count: async () => batches.flat().length,
  read: async function* () {
    for (const batch of batches) {
      log(`rows: ${batch}`);
      yield batch;
    }
  },
});

const EMAILS = Array.from({ length: 5 }, (_, nth) => `e${nth}@x.example`);
const EMAIL_JOBS = parseConfig(
  {
    ...{ base_url: "https://a.example", api_key: "k" },
    external_api: { api_url: "https://a.example", api_key: "k" },
    email_check: { emails: EMAILS, max_wait_seconds: 300, max_per_sync: 4, refresh_after_days: 7 },
    email_verification: { emails: EMAILS },
  },
  {},
);

/** A run on e-mails, which the service checks, or verifies at once. */
function ofEmails(
  context: JobContext,
  { nth, service, states }: Run,
  spec: Spec,
  isLost: boolean,
): Partial<JobContext> {
  const type = jobTypeOf(spec.setting, EMAIL_JOBS);
  const { book } = context;
  const state = isLost ? null : parseJobState(spec, states.get(spec.name));
  if (state !== null) tellBook(book, spec.name, state, true);
  const task = { ...context.task, spec, cursor: state?.cursor ?? null };
  const submit: JobContext["client"]["submit"] = async (item) => {
    const taken = spec === CHECKS ? { job_id: `c${nth}.${item}` } : { status: "valid" };
    return type.taken(taken, item, service.now) ?? { kind: "unknown", error: new Error("no job") };
  };
  const ask: JobContext["client"]["ask"] = async (job) =>
    checked(job.slice(job.indexOf(".") + 1), service.now, nth);
  const inputs = inputsOf({ ...context, type, task });
  return { type, task, inputs, client: { ...context.client, submit, ask } };
}

/** A check of two sources, of which one says nothing of every other e-mail in every third run. */
function checked(email: string, now: number, nth: number): JobReply {
  const said = { is_user: email > "e2", status: "done", checked_at: new Date(now).toISOString() };
  const isWhole = nth % 3 > 0 || /[13]/.test(email);
  const sources = { crm: said, ads: isWhole ? said : { is_user: null, status: "failed" } };
  const view = { email, status: "completed", sources };
  const reply = jobTypeOf("emailCheck", EMAIL_JOBS).result(200, view);
  if (reply === undefined) throw new Error("It is no answer");
  return reply;
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "answers that are there at once": { items: 9, runs: [0, HOUR] },
  "answers after 12 seconds": { items: 47, takes: 12_000, prices: [3, 1, 0], runs: [0, HOUR] },
  "answers after 100 seconds, without receipts": { items: 12, takes: 100_000, hasReceipts: false },
  "answers after the run": { items: 9, takes: 2 * HOUR, runs: [0, HOUR, HOUR, DAY] },
  "caps of submissions": { items: 9, runs: [0, HOUR, DAY, DAY], ...capped({ sync: 3, day: 5 }) },
  "caps of credits": {
    ...{ items: 30, prices: [4, 9, 2], takes: 9_000, runs: [0, HOUR, DAY, 31 * DAY] },
    ...capped({}, { sync: 25, day: 40, month: 60 }),
  },
  "submissions whose answers are lost": { items: 9, submitted: times(9, LOST), runs: [0, HOUR, DAY, DAY] },
  "submissions that are dropped now and then": {
    ...{ items: 9, submitted: times(9, TAKEN, DROPPED), runs: [0, HOUR, DAY] },
  },
  "submissions that have to wait": { items: 9, submitted: times(12, LATER), runs: [0, HOUR, DAY] },
  "jobs that fail": { items: 4, asked: times(20, FAILED), runs: [0, HOUR, DAY, 3 * DAY, 8 * DAY] },
  "jobs that are not ready": { items: 5, asked: times(3, PENDING, PENDING, PENDING, READY), runs: [0, HOUR] },
  "jobs that are queued for hours": { items: 5, asked: times(5, QUEUED), runs: [0, HOUR, 8 * HOUR, DAY] },
  "jobs that nobody knows": {
    ...{ items: 4, asked: times(20, UNUSABLE) },
    runs: [0, HOUR, DAY, 7 * DAY, 7 * DAY, 100 * DAY, 31 * DAY],
  },
  "jobs that are denied": { items: 5, asked: times(9, DENIED), runs: [0, HOUR, DAY, 8 * DAY] },
  "a service that falls silent": { items: 5, asked: times(9, SILENT), runs: [0, HOUR, DAY] },
  "some of everything": {
    items: 20,
    submitted: [TAKEN, LOST, TAKEN, DROPPED, TAKEN, TAKEN, LATER, LOST, TAKEN, LOST, LOST, LOST],
    asked: [READY, FAILED, PENDING, UNUSABLE, SILENT, QUEUED, DENIED, READY, FAILED, FAILED, UNUSABLE],
    takes: 7_000,
    runs: [0, HOUR, DAY, DAY, 8 * DAY, 31 * DAY],
  },
  "states that take half a minute": { items: 45, takes: 20_000, stateTakes: 30_000, runs: [0, HOUR] },
  "a full refresh": { items: 9, takes: 2 * HOUR, isFullRefresh: true, runs: [0, DAY] },
};

/** What stands between a run and its answers. */
const TROUBLES: Readonly<Record<string, Situation>> = {
  "answers that name other items": {
    ...{ items: 6, runs: [0, HOUR] },
    replies: ["I0.Example.", "other.example", "no domain", 7, "other.example", "www.i5.example"].map((name) =>
      answer(name),
    ),
  },
  "answers that are too long": {
    ...{ items: 24, prices: [3], runs: [0, HOUR, DAY] },
    replies: [undefined, overlong(7), overlong(7), overlong(9), undefined, overlong(null), overlong(0)],
  },
  "answers that do not say what they cost": {
    ...{ items: 4, prices: [3], runs: [0, HOUR, HOUR] },
    replies: [overlong(null), overlong(null), undefined, overlong(null), overlong(40)],
  },
  "nonsense that may pass": {
    ...{ items: 5, runs: [0, HOUR, DAY] },
    replies: times(2, unusable(true)).concat(
      undefined as never,
      times(4, unusable(true)),
      times(9, unusable(false)),
    ),
  },
  "fifty jobs that bring nothing": {
    ...{ items: 51, asked: [READY, ...times(50, QUEUED), ...times(70, UNUSABLE)], runs: [0, 9 * HOUR] },
  },
  "jobs that have been silent for days": {
    ...{
      items: 4,
      asked: [READY, ...times(3, QUEUED), ...times(9, PENDING)],
      runs: [0, DAY, 2 * DAY, 8 * DAY],
    },
  },
  "jobs without news for weeks": {
    ...{ items: 3, asked: [READY, QUEUED, QUEUED], runs: [0, 3 * DAY, 6 * DAY, 9 * DAY] },
    replies: [undefined, undefined, undefined, ...[1, 2, 3, 4, 5, 6].map((nth) => unusable(false, nth))],
  },
  "an item that is doubted": {
    ...{ items: 7, runs: [0, DAY, 31 * DAY] },
    submissions: [refused("other-item"), undefined, refused("is-answer"), refused("other-item")],
  },
  "a form that is not liked": { items: 5, runs: [0, DAY], submissions: times(3, refused("other-item")) },
  "many items that are refused": {
    ...{ items: 8, runs: [0, 31 * DAY] },
    submissions: [undefined, ...times(7, refused("is-answer"))],
  },
  "a key that may not submit": { items: 3, runs: [0, HOUR], submissions: [undefined, refused("operator")] },
  "no credits": {
    ...{ items: 6, runs: [0, HOUR] },
    submissions: [undefined, undefined, refused("credits"), refused("credits")],
  },
  "results that say that there are no credits": {
    ...{ items: 6, runs: [0, HOUR, HOUR] },
    replies: [answer("i0.example"), answer("i1.example", DRY), answer("i2.example", DRY)],
  },
  "a limit of requests": {
    ...{ items: 2, submissions: times(9, refused("limit")), runs: [0, HOUR] },
    changes: turnsAfter(10 * MINUTE),
  },
  "look-ups that stay silent": {
    ...{ items: 8, replies: times(6, pendingFor(7 * MINUTE)), runs: [0, HOUR] },
    changes: ({ type }) => ({ type: { ...type, maxWait: 2 * HOUR } }),
  },
  "a long wait": {
    ...{ items: 2, replies: [pendingFor(4 * MINUTE)], ...capped({}, { sync: 9 }) },
    changes: ({ type }) => ({ type: { ...type, maxWait: HOUR } }),
  },
  "a wait that is too long": { items: 2, replies: times(3, pendingFor(6 * MINUTE)), runs: [0, MINUTE, HOUR] },
  "a run that has to end": {
    ...{ items: 9, takes: 25_000, runs: [0, HOUR] },
    changes: (_context, { nth, service }) => (nth > 0 ? {} : { endsAt: service.now + 40_000 }),
  },
  "a run that is stopped": { items: 9, takes: 9_000, runs: [0, HOUR], changes: stoppedAfter(3) },
  "a run that is stopped at its first wait": { items: 2, runs: [0, HOUR], changes: stoppedAfter(0) },
  "another run with the locks": {
    ...{ items: 9, runs: [0, 0, 0, 0, HOUR] },
    changes: (_context, { nth }) => ({
      checkLocks: failsAt([1, 2, 5, 6][nth] ?? 0, "Another run has the locks"),
    }),
  },
  "a disk that is full": {
    ...{ items: 6, runs: [0, 0, 0, 0, 0, HOUR] },
    changes: ({ memory }, { nth }) => {
      const disk = failsAt([1, 2, 3, 4, 5][nth] ?? 0, "The disk is full");
      return { memory: { ...memory, write: (...news) => disk().then(() => memory.write(...news)) } };
    },
  },
  "receipts that are damaged": {
    ...{ items: 4, asked: [READY, QUEUED], runs: [0, 9 * HOUR] },
    changes: ({ memory }, { nth }) => ({
      memory: { ...memory, blocked: nth === 0 ? undefined : new ConfigError("The receipts are damaged") },
    }),
  },
  "requests that fail": { items: 3, submissions: ["throws"], replies: ["throws"], runs: [0, HOUR, HOUR] },
  "a clock that is nowhere": {
    ...{ items: 1, runs: [0] },
    changes: ({ client }) => ({ client: { ...client, ready: failsAt(1, "Nobody answers") } }),
  },
  "clocks that differ": {
    ...{ items: 6, runs: [0, 0, 0, 0], ...capped({ sync: 1 }) },
    changes: ({ clock }, { nth, service }) => {
      const skew = [26 * HOUR, 26 * HOUR + 1, -27 * HOUR, -26 * HOUR][nth] ?? 0;
      return { clock: { ...clock, now: () => service.now - skew } };
    },
  },
  "both streams of look-ups": {
    ...{ items: 4, hasSecond: true, runs: [0, HOUR, 3 * HOUR] },
    replies: [
      withContacts("i0"),
      withContacts("i1"),
      pendingFor(2 * HOUR),
      withContacts("i3"),
      withContacts("i2"),
    ],
    changes: ({ shared }) => ({ shared: { ...shared, answers: new Map() } }),
  },
  "both streams of look-ups, without what the first was told": {
    ...{ items: 3, hasSecond: true, runs: [0, HOUR] },
    replies: [withContacts("i0"), withContacts("i1"), unusable(false)],
  },
  "items that are refreshed": {
    ...{ items: 3, runs: [0, DAY, 8 * DAY, 5 * DAY], asked: [READY, READY, READY, FAILED, READY, READY] },
    changes: (context) => withRules(context, { refreshAfterDays: 7, retryUnknown: false }),
  },
  "lost submissions that are sent again": {
    ...{ items: 4, submitted: [TAKEN, ...times(7, LOST)], runs: [0, HOUR, HOUR, DAY] },
    changes: (context) => withRules(context, { refreshAfterDays: null, retryUnknown: true }),
  },
  "nothing that is known": {
    ...{ items: 0, runs: [0, HOUR, HOUR], ...capped({ sync: 3 }, { sync: 50 }) },
    changes: (context, { nth }) => {
      const few = ["d.example", "x y", "e.example", "-"];
      const many = ["a.example", ...few, "b.example", "c.example, ?", "/", "[", "@"];
      const list = [many, few, ["f.example"]][nth] ?? [];
      const froms = ([[], ["people", "companies"], ["people"]] as const)[nth] ?? [];
      const type = { ...context.type, list, froms };
      const task = { ...context.task, knowsThePast: false, mostSubmissions: Math.max(1, 2 - nth) };
      return {
        type,
        task,
        inputs: inputsOf({ ...context, type }),
        memory: { ...context.memory, hasReceipts: nth === 0 },
      };
    },
  },
  "a first run whose items rows name": {
    ...{ items: 0 },
    changes: (context, run) => {
      const type = { ...context.type, froms: ["companies"] as const };
      const task = { ...context.task, knowsThePast: false };
      return { type, task, inputs: inputsOf(context, { sources: [rowsOf(run, ["r.example"])] }) };
    },
  },
  "rows that name items": {
    ...{ items: 2, runs: [0, HOUR, DAY] },
    changes: (context, run) => {
      const { nth } = run;
      const rows = rowsOf(
        run,
        ["i0.example", "r0.example", "", "held.example"],
        [],
        ["r1.example", "r0.example", "r2.example"],
      );
      const suppressed = new Suppression([["held.example"]]);
      const task = { ...context.task, readsAllRows: nth === 1 };
      return { task, inputs: inputsOf(context, { sources: [rows], suppressed, readsAll: nth === 1 }) };
    },
  },
  "rows that are looked at first, for a full refresh": {
    ...{ items: 1, runs: [0, HOUR, DAY], asked: [READY, QUEUED, READY, FAILED] },
    changes: (context, run) => {
      const task = {
        ...context.task,
        looksFirst: true,
        readsAllRows: true,
        truncates: true,
        generation: run.nth,
      };
      return { task, inputs: inputsOf(context, { sources: [rowsOf(run, ["r0.example"], ["r1.example"])] }) };
    },
  },
  "rows that cannot be read": {
    ...{ items: 1, runs: [0, HOUR] },
    changes: (context, run) => {
      const broken = { ...rowsOf(run, []), count: failsAt(1, "The rows are gone") as () => Promise<never> };
      const task = { ...context.task, truncates: true };
      return {
        task,
        inputs: inputsOf(context, {
          sources: run.nth === 0 ? [broken, rowsOf(run, ["r.example"])] : [rowsOf(run, [])],
        }),
      };
    },
  },
  "rows, and a clock that is nowhere": {
    ...{ items: 0 },
    changes: (context, run) => ({
      client: { ...context.client, ready: failsAt(1, "Nobody answers") },
      inputs: inputsOf(context, { sources: [rowsOf(run, ["r.example"], ["s.example"])] }),
    }),
  },
  "caps that are passed": {
    ...{ items: 4, prices: [2, 90, 1, 1], runs: [0, DAY] },
    ...capped({}, { sync: 30, day: 40, month: 50 }),
  },
  "e-mails that are verified": {
    ...{ items: 0, runs: [0, HOUR, HOUR] },
    submissions: [undefined, ...times(3, refused("is-answer", "INVALID_EMAIL"))],
    // Before the second run the platform loses the state, and the receipts know each answer.
    changes: (context, run) => ofEmails(context, run, VERIFICATIONS, run.nth === 1),
  },
  "e-mails that an older version verified under another spelling": {
    ...{ items: 0, runs: [0, HOUR] },
    changes: (context, run) => {
      const { book } = context;
      const [entry] = entriesOf("email", "e0@x.example");
      const at = Date.UTC(2026, 1, 1);
      const sealed = seal("salt", "e0@x.example.", '{"status":"valid"}');
      const handle = { id: "old.0", at, day: dayOf(at), job: null, sealed, sure: true, cost: 0 };
      const item = { ...UNBOUGHT, day: dayOf(at), handle };
      if (entry !== undefined) book.add({ digests: book.digests, items: [[book.keyOf(entry), item]] }, 0);
      return ofEmails(context, run, VERIFICATIONS, false);
    },
  },
  "e-mails that are checked": {
    ...{ items: 0, runs: [0, HOUR, 2 * HOUR, 8 * DAY, HOUR] },
    replies: [pendingFor(30_000), undefined, undefined, undefined, pendingFor(2 * HOUR)],
    changes: (context, run) => ofEmails(context, run, CHECKS, false),
  },
  "rows that need a look although nothing may be bought": {
    ...{ items: 1, runs: [0, HOUR], asked: times(1, QUEUED), ...capped({ sync: 1 }) },
    changes: (context, run) => {
      const task = { ...context.task, readsAllRows: run.nth === 0 };
      return { task, inputs: inputsOf(context, { sources: [rowsOf(run, ["r0.example"], ["r1.example"])] }) };
    },
  },
  "rows of which one may be bought": {
    ...{ items: 2, runs: [0, HOUR], ...capped({ sync: 3 }) },
    changes: (context, run) => ({
      inputs: inputsOf(context, { sources: [rowsOf(run, ["r0.example"], ["r1.example", "r2.example"])] }),
    }),
  },
  "states that take their time until the run has to end": {
    ...{ items: 45, takes: 20_000, stateTakes: 30_000, runs: [0, HOUR] },
    changes: (_context, { nth, service }) => (nth > 0 ? {} : { endsAt: service.now + 200_000 }),
  },
  "states and submissions that take a moment": {
    ...{ items: 40, takes: 20_000, stateTakes: 2_000, runs: [0] },
    changes: turnsAfter(5_000),
  },
  "submissions that take their time until the run has to end": {
    ...{ items: 12, takes: 20_000, runs: [0, HOUR] },
    changes: (context, run) => ({
      ...(run.nth === 0 && { endsAt: run.service.now + 90_000 }),
      ...turnsAfter(10_000)(context, run),
    }),
  },
  "jobs that take days": {
    ...{ items: 1, takes: 2 * DAY + MINUTE, runs: [0, 0, 0] },
    changes: (_context, { nth, service }) => {
      service.now = Math.max(service.now, Date.UTC(2026, 2, 2 + 2 * nth, 10));
      return {};
    },
  },
  "both streams of look-ups, and a job that brings nothing": {
    ...{ items: 2, hasSecond: true, runs: [0, HOUR], replies: [unusable(false)] },
    changes: ({ shared }) => ({ shared: { ...shared, answers: new Map() } }),
  },
  "silence that goes on": {
    ...{ items: 6, asked: [READY, ...times(5, QUEUED)], runs: [0, 9 * HOUR] },
    replies: [...times(6, undefined), unusable(false), ...[1, 2, 3, 4].map(silent)],
  },
  "credits that end with an answer that cost some": {
    ...{ items: 7, runs: [0, HOUR] },
    replies: [undefined, answer("i1.example", { cost: 2, code: "QUOTA_EXCEEDED" })],
  },
  "jobs that wait for an hour": { items: 24, replies: [undefined, ...times(20, pendingFor(HOUR))] },
  "jobs that wait for more than an hour": {
    ...{ items: 24, replies: [undefined, ...times(20, pendingFor(HOUR + 1))] },
  },
};

class Tapes extends Tape {
  readonly #submitted: Tape;
  readonly #asked: Tape;

  constructor(submitted: readonly number[] = [], asked: readonly number[] = []) {
    super([]);
    [this.#submitted, this.#asked] = [new Tape(submitted), new Tape(asked)];
  }

  override choose<Choice>(...choices: readonly [Choice, ...Choice[]]): Choice {
    const tape = choices.length === FATES_OF_QUESTIONS ? this.#asked : this.#submitted;
    return tape.choose(...choices);
  }
}

const shown = (ms: number): string => `${ms / 1_000} s`;

/** What an event says; of a state only what the run has spent, because the last one stands at the end of the run. */
function textOf(event: Event): string {
  if (event.kind === "checkpoint")
    return `state${event.announces === true ? " that announces" : ""}, spent ${JSON.stringify(event.spent)}`;
  if (event.kind === "records" && event.facts === undefined)
    return `records of ${event.lines.map((line) => JSON.parse(line)).map(({ domain, email, source }) => domain ?? [email, source].join(" "))}`;
  return JSON.stringify(event, (key, value) => (key === "error" ? String(value) : value));
}

/** Everything that the service is asked, with what came of it, and each event; in seconds since the run began. */
async function told(name: string, situation: Situation): Promise<string> {
  const { items, submitted, asked, takes, prices, runs = [0], stateTakes = 0, ...options } = situation;
  const service = new JobService(new Tapes(submitted, asked), prices, takes);
  const [submissions, replies] = [[...(options.submissions ?? [])], [...(options.replies ?? [])]];
  const names = Array.from({ length: items }, (_, nth) => `i${nth}.example`);
  const lines = [`# ${name}`];
  const states = new Map<string, unknown>();
  for (const [nth, pause] of runs.entries()) {
    service.now += pause;
    let began = service.now;
    const log = (text: string): void => void lines.push(`  ${shown(service.now - began)}: ${text}`);
    const plain = service.context(names, states.get(LOOKUPS.name), options);
    const context = { ...plain, ...options.changes?.(plain, { nth, service, states, log }) };
    began = service.now;
    const { submit, ask, backOff } = context.client;
    const client: JobContext["client"] = {
      ...context.client,
      submit: async (item) => {
        const next = submissions.shift();
        if (next === "throws") throw new Error("The request failed");
        const became = next ?? (await submit(item));
        log(`submit ${item}: ${became.kind}`);
        return became;
      },
      ask: async (job) => {
        const next = replies.shift();
        if (next === "throws") throw new Error("The question failed");
        const reply = typeof next === "function" ? next(service.now) : (next ?? (await ask(job)));
        log(`ask ${job}: ${reply.kind}`);
        return reply;
      },
      backOff: async (failures) => {
        log(`back off after ${failures}`);
        await backOff(failures);
      },
    };
    lines.push(`Run ${nth + 1}`);
    const contexts = [{ ...context, client }];
    if (options.hasSecond === true)
      contexts.push(secondOf({ ...context, client }, states.get(CONTACTS.name)));
    for (const one of contexts) {
      const { spec } = one.task;
      try {
        for await (const event of readJobs(one)) {
          if (event.kind === "checkpoint") {
            service.now += stateTakes;
            states.set(spec.name, JSON.parse(JSON.stringify(event.state)));
          }
          log(textOf(event));
        }
      } catch (error) {
        log(String(error));
      }
      lines.push(`  ${JSON.stringify(states.get(spec.name))}`);
    }
    service.kill();
  }
  return [...lines, ""].join("\n");
}

/** The turn of the setting's other stream, in the run of the first. */
function secondOf(first: JobContext, saved: unknown): JobContext {
  const state = parseJobState(CONTACTS, saved);
  if (state !== null) tellBook(first.book, CONTACTS.name, state, true);
  return { ...first, task: { ...first.task, spec: CONTACTS, cursor: null, isSecond: true, buys: false } };
}

/** After a change that is meant: `npx vitest run test/unit/jobs/transcripts.test.ts -u`, and read what it changed. */
it("buys and asks like this, and leaves these states", async () => {
  const parts: string[] = [];
  for (const [name, situation] of Object.entries(SITUATIONS)) parts.push(await told(name, situation));
  await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/job-transcripts.txt");
});

it("does this where something goes wrong, where rows or e-mails are the items, and in the turn of a second stream", async () => {
  const parts: string[] = [];
  for (const [name, situation] of Object.entries(TROUBLES)) parts.push(await told(name, situation));
  await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/job-trouble-transcripts.txt");
});

/** Runs whose states take so long that submissions leave in larger groups. */
const SLOW: Readonly<Record<string, Situation>> = {
  "states that take a third of a second": {
    ...{ items: 60, takes: 20_000, stateTakes: 300, runs: [0, HOUR] },
    changes: turnsAfter(700),
  },
  "many e-mails, and states that take their time": {
    ...{ items: 0, stateTakes: 400, runs: [0, HOUR] },
    changes: (context, run) => {
      const emails = ofEmails(context, run, VERIFICATIONS, false);
      const list = Array.from({ length: 90 }, (_, nth) => `m${nth}@x.example`);
      const type = { ...context.type, ...emails.type, list };
      const submit = async (item: string): Promise<Submission> => {
        run.service.now += 90;
        return type.taken({ status: "valid" }, item, run.service.now) ?? refused("is-answer");
      };
      const inputs = inputsOf({ ...context, ...emails, type });
      return { ...emails, type, inputs, client: { ...context.client, ...emails.client, submit } };
    },
  },
};

/** What some stories have in common, in one line. Its digest is of every request, event and state. */
function summaryOf(name: string, stories: readonly string[]): string {
  const all = stories.join("\n");
  const many = (what: RegExp): number => all.match(what)?.length ?? 0;
  const numbers = [
    `${many(/: submit /g)} submitted`,
    `${many(/: ask /g)} asked`,
    `${many(/: records of /g)} records`,
    `${many(/: state/g)} states`,
    `${many(/"level":"warn"/g)} warnings`,
    `${many(/ s: \w*Error: /g)} failed`,
  ];
  return `${name}: ${numbers.join(", ")}; ${digestOf(name, stories)}\n`;
}

/** `TOLD="no credits" npx vitest run test/unit/jobs/transcripts.test.ts` prints the stories of a line. */
it("buys and asks in many more situations, each trouble with others, as these lines sum them up", async () => {
  const roll = dice(11);
  const some = Object.keys(SITUATIONS);
  const fates = (many: number, kinds: number): number[] => Array.from({ length: many }, () => roll(kinds));
  const lines: string[] = [];
  for (const [name, trouble] of Object.entries({ ...TROUBLES, ...SLOW })) {
    const stories: string[] = [];
    for (const isRandom of [false, true, true]) {
      const other = some[roll(some.length)] ?? "";
      const random = {
        ...{ submitted: fates(12, 6), asked: fates(20, FATES_OF_QUESTIONS), prices: fates(3, 9) },
        ...{ hasReceipts: roll(3) > 0, takes: roll(4) * 9_000, runs: [0, MINUTE, HOUR, DAY] },
      };
      const situation = { ...SITUATIONS[other], ...trouble, ...(isRandom && random) } as Situation;
      stories.push(await told(`${other}, ${name}`, situation));
    }
    lines.push(summaryOf(name, stories));
  }
  await expect(lines.join("")).toMatchFileSnapshot("../../golden/job-sums.txt");
});
