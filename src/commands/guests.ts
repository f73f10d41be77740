import { NotFoundError } from "../base/errors.ts";
import { type ConfiguredStream, incremental } from "../catalog/airbyte.ts";
import { fieldNamesOf } from "../catalog/field-rules.ts";
import { loadSchema } from "../catalog/schema.ts";
import { COMPANIES, type JobStreamSpec, jobSpecsOf, PEOPLE, streamsOf } from "../catalog/streams.ts";
import { type Jobs, openJobs, probeJobs } from "../jobs/jobs.ts";
import { Privacy } from "../privacy/privacy.ts";
import type { Reader } from "../run/reader.ts";
import { RowReader } from "../run/row-reader.ts";
import { type Guests, type Run, type RunOptions, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Session } from "../run/session.ts";
import { stateKey, statesByName } from "../state/envelopes.ts";
import { refuseOtherService } from "../state/resume.ts";
import { warning } from "../sync/event.ts";
import { isNotOnPlan } from "./probe.ts";

/** Locks the jobs and reads earlier purchases. Call it before any request. @param streams undefined: all streams of the config */
export type OpenJobs = (
  streams: readonly ConfiguredStream[] | undefined,
  states: ReadonlyMap<string, unknown>,
  /** Throws if another run has taken the state. Called before each submission. */
  checkState: () => Promise<void>,
) => Promise<void>;

/** Opens a run with privacy and jobs, and always closes the jobs. `work` must call `open` before it reads jobs. */
export async function withGuests<Result>(
  options: Omit<RunOptions, "guests">,
  work: (run: Run, open: OpenJobs) => Promise<Result>,
): Promise<Result> {
  let jobs: Jobs | undefined;
  const guests = async (session: Session, rows: readonly Reader[]): Promise<Guests> => {
    const privacy = new Privacy(session.config);
    await privacy.refuseUnknown(() => liveNames(rows));
    const readers = jobSpecsOf(session.config).map((spec) => readerOf(spec, session, () => jobs));
    return { privacy, readers };
  };
  try {
    return await withRun({ ...options, guests }, (run) =>
      work(run, async (...asked) => {
        jobs = await openFor(run, options.runtime, ...asked);
      }),
    );
  } finally {
    await jobs?.close();
  }
}

/** The names of the fields of live rows. */
async function liveNames(rows: readonly Reader[]): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const reader of rows) {
    const records = await reader.sample(loadSchema(reader.spec.name)).catch((error: unknown) => {
      if (isNotOnPlan(error) || error instanceof NotFoundError) return [];
      throw error;
    });
    for (const record of records) fieldNamesOf(record, names);
  }
  return names;
}

async function openFor(
  { session, privacy }: Run,
  runtime: Runtime,
  ...[streams, states, checkState]: Parameters<OpenJobs>
): Promise<Jobs> {
  const { config, clients, signal, began } = session;
  const selected = streams ?? streamsOf(config).map(({ name }) => incremental(name));
  const byName = new Map(statesByName(states));
  for (const { name, namespace } of selected) {
    const own = states.get(stateKey(name, namespace));
    if (own !== undefined) byName.set(name, own);
  }
  const isContinued = selected.some(
    ({ name, syncMode }) => name === PEOPLE.name && syncMode === "incremental",
  );
  if (isContinued) refuseOtherService(PEOPLE.name, byName.get(PEOPLE.name), session.service);
  return await openJobs(config, selected, byName, {
    ...{ ...runtime, ...clients, signal, checkState },
    endsAt: began + (config.maxRunSeconds ?? Number.POSITIVE_INFINITY) * 1000,
    rowsOf: (from) => ({
      from,
      basis: JSON.stringify([session.service, session.keyId, session.filters(ROWS[from])]),
      read: (saved) =>
        new RowReader(ROWS[from], session).read({ configured: incremental(from) }, { schema: null }, saved),
    }),
    replacementFor: (stream, field) => privacy.replacementFor(stream, field),
    notify: (text) => session.notify(warning(text)),
  });
}

/** The streams whose rows name items of jobs. */
const ROWS = { people: PEOPLE, companies: COMPANIES };

/** Reads the stream of a job. @param jobs returns undefined until the jobs are open */
const readerOf = (spec: JobStreamSpec, session: Session, jobs: () => Jobs | undefined): Reader => ({
  spec,
  probe: async () => {
    await probeJobs(spec.setting, session.clients);
    return {};
  },
  sample: async () => [],
  read: (_, check) => {
    const opened = jobs();
    if (opened === undefined) throw new Error("Cannot work on jobs: they were not opened");
    return opened.read(spec, check);
  },
});
