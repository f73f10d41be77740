import { NotFoundError, TransientError } from "../base/errors.ts";
import { isObject, type JsonObject } from "../base/json.ts";
import { fromLatin1, plural } from "../base/text.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import {
  COMPANIES,
  type JobSetting,
  type JobStreamSpec,
  jobSpecsOf,
  PEOPLE,
  type RowStreamSpec,
} from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import type { Processes } from "../output/files/processes.ts";
import type { Suppression } from "../privacy/suppress.ts";
import { type Clock, systemClock } from "../service/clock.ts";
import { type RowCheck, RowParser, type RowRules } from "../service/rows.ts";
import type { Event, RawLine } from "../sync/event.ts";
import { IS_NEW, SeenRows } from "../sync/seen-rows.ts";
import { bounded, NOT_COUNTED, type Service } from "../sync/service.ts";
import type { Window } from "../sync/window.ts";
import { withoutEchoes } from "./echoes.ts";
import { Inputs, type RowSource } from "./inputs.ts";
import type { JobType } from "./job-type.ts";
import { type JobClients, jobTypeOf, probeJobs } from "./kinds.ts";
import { Memory } from "./memory.ts";
import { readJobs } from "./run.ts";

export { probeJobs } from "./kinds.ts";

/** The jobs of one run, from when their locks are taken. */
export type Jobs = {
  /** The events of one of the selected streams. Throws ConfigError for a state that cannot be used. */
  read(spec: JobStreamSpec, check: RowCheck): AsyncGenerator<Event>;
  close(): Promise<void>;
};

/** A stream that is asked for. */
export type SelectedJobs = Pick<ConfiguredStream, "name" | "syncMode"> &
  Partial<Pick<ConfiguredStream, "generationId" | "minimumGenerationId" | "syncId">>;

/** The run provides these to jobs. */
export type JobServices = JobClients & {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly pid: number;
  /** Says whether the run that left a lock still runs. */
  readonly processes?: Processes | undefined;
  /** By the monotonic clock: when the run is to end. */
  readonly endsAt: number;
  /** Throws if another run has taken the state that this one saves; called before each submission. */
  checkState(): Promise<void>;
  /** The rows of a stream, and the filters that its rows are read under. */
  streamApi(spec: RowStreamSpec, rules: Omit<RowRules, "key">): Service;
  filtersOf(spec: RowStreamSpec): object;
  /** Replaces a value of a field where a record repeats it elsewhere; null if the field leaves as it is. */
  echoOf(stream: string, field: string): ((value: string) => string) | null;
  notify(text: string): void;
};

/**
 * Takes the locks of the jobs among the selected streams, and reads what is remembered of them. Asks the service nothing.
 * @throws TransientError while another run has the receipts
 * @param states what the state says of each stream
 */
export async function openJobs(
  config: Config,
  selected: readonly SelectedJobs[],
  states: ReadonlyMap<string, unknown>,
  services: JobServices,
): Promise<Jobs> {
  const specs = jobSpecsOf(config);
  const orders = new Map(selected.map((stream) => [stream.name, orderOf(stream)]));
  const settings = new Set(specs.filter(({ name }) => orders.has(name)).map(({ setting }) => setting));
  const streams = specs
    .filter(({ setting }) => settings.has(setting))
    .map((spec) => ({
      ...{ ...spec, isRefresh: false, generation: null, isSelected: orders.has(spec.name) },
      ...orders.get(spec.name),
    }));
  const syncId = [...orders.values()].find((order) => order.syncId !== null)?.syncId ?? null;
  const { environment, signal, pid, processes, notify, clock, endsAt } = services;
  // A lock is judged by real time.
  const lock = { clock: systemClock, signal, pid, notify, ...(processes && { processes }) };
  const memory = await Memory.open({ config, environment, states, streams, lock, syncId });
  /** The settings of which a stream has submitted. */
  const started = new Set<JobSetting>();

  return {
    read: (spec, check) => {
      const { setting, name } = spec;
      const order = orders.get(name);
      if (order === undefined) throw new Error(`Cannot open the stream "${name}": it was not selected`);
      const { isRefresh } = order;
      const book = memory.of(setting);
      const maxSubmissions = memory.maxSubmissions(setting);
      const hasHistory = book.hasState || book.size > 0;
      // Without a state only rows tell which items of the receipts this connection wants.
      const scanAllInputs = isRefresh || (hasHistory && !book.hasState);
      const isSecond = started.has(setting) && !isRefresh;
      if (!isRefresh) started.add(setting);
      const client = setting === "emailCheck" ? services.publicApi : services.externalApi;
      const type = jobTypeOf(setting, config);
      const { refreshAfterDays, retryUnknown } = type.resubmitRules;
      const hide = services.echoOf(name, type.kind);
      const parser = new RowParser({ key: "", cursor: null, ...check });
      const inputs = new Inputs({
        ...{ type, book, stream: name, suppressed: config.suppressed },
        sources: type.froms.map((from) => rowsOf(from, type.kind, config, services)),
        // A later run may want items that this one does not.
        readsAll: refreshAfterDays !== null || retryUnknown || scanAllInputs,
        now: () => client.now(),
      });
      return readJobs({
        ...{ spec, type, isRefresh, isSecond, hasHistory, scanAllInputs, maxSubmissions },
        ...{ book, inputs, memory, client, clock, endsAt, signal },
        ready: async () => {
          if (!client.knowsTime) await probeJobs(spec, services);
        },
        toLines: (records) => {
          const { left, suppressed } = unsuppressed(records, config.suppressed);
          const leaving = hide === null ? left : left.map((one) => withoutEchoes(one, type.kind, hide));
          return { lines: parser.toLines(leaving), suppressed };
        },
        checkLocks: async () => {
          await memory.check();
          await services.checkState();
        },
      });
    },
    close: () => memory.close(),
  };
}

/** The records without those of a suppressed domain or e-mail, and without suppressed contacts, also in lists of lists. */
function unsuppressed(records: readonly JsonObject[], suppression: Suppression) {
  let suppressed = 0;
  const isShown = (value: unknown): boolean => {
    const { domain, email } = isObject(value) ? value : { domain: value, email: value };
    const isSuppressed =
      !Array.isArray(value) && (suppression.has("domain", domain) || suppression.has("email", email));
    if (isSuppressed) suppressed += 1;
    return !isSuppressed;
  };
  const shown = (contacts: unknown): unknown =>
    Array.isArray(contacts) ? contacts.filter(isShown).map(shown) : contacts;
  const left = records
    .filter(isShown)
    .map((record) => ("contacts" in record ? { ...record, contacts: shown(record["contacts"]) } : record));
  return { left, suppressed };
}

/** The order of the platform. The ids of PyAirbyte, 1 in every sync and mode, number nothing and call for no refresh. */
function orderOf({ syncMode, generationId = null, minimumGenerationId = 0, syncId = null }: SelectedJobs) {
  const isNumbered = [generationId, minimumGenerationId, syncId].some((id) => id !== 1);
  return {
    isRefresh: syncMode === "full_refresh" || (isNumbered && minimumGenerationId > 0),
    generation: isNumbered ? generationId : null,
    syncId: isNumbered && syncId !== null ? String(syncId) : null,
  };
}

const ROWS = { people: PEOPLE, companies: COMPANIES };
/** The fields of rows that name items. */
const FIELDS = {
  people: { domain: "companyDomain", email: "email" },
  companies: { domain: "domain", email: "email" },
};

/** The rows of a stream as a source of items. Raw values: what is dropped or hashed on its way out is needed here. */
function rowsOf(
  from: JobType["froms"][number],
  kind: JobType["kind"],
  { verifyCounts }: Config,
  { streamApi, filtersOf, notify }: JobServices,
): RowSource {
  const spec = ROWS[from];
  const api = streamApi(spec, { cursor: spec.cursorField, schema: null });
  const countOf = async (window: Window): Promise<number | undefined> => {
    const { rows, undated, known } = await api.count(window);
    return known ? rows + undated : undefined;
  };
  return {
    from,
    isDated: !spec.sampled,
    filters: JSON.stringify(filtersOf(spec)),
    read: async function* (day) {
      const window: Window = day === null ? { kind: "all" } : { kind: "open", from: day, undated: false };
      const rows = await countOf(window).catch((error: unknown) => {
        // There may be an export without a list.
        if (!spec.sampled || !(error instanceof NotFoundError)) throw error;
        notify(`${error.message}. Until then it is not known whether all rows that name items came`);
        return undefined;
      });
      const count = rows === undefined ? NOT_COUNTED : { ...NOT_COUNTED, known: true, rows };
      const seen = new SeenRows(count.rows);
      let shown = 0;
      for await (const batch of bounded(api.stream(window), window, count)) {
        const keys = seen.digestsOf(batch.map(({ key, raw }) => (key === "" ? raw : key)));
        // A row that comes twice must not replace one that is lost.
        shown += batch.filter(({ raw }, nth) => seen.add(keys, nth, raw, 1) & IS_NEW).length;
        yield batch.map(({ raw, isSuppressed }) =>
          isSuppressed === true ? "" : textIn(raw, FIELDS[from][kind]),
        );
      }
      if (rows === undefined || shown >= rows || !verifyCounts) return;
      // Rows that have left since are no loss.
      const left = (await countOf(window)) ?? 0;
      if (shown < left) throw tooFew(from, shown, left);
    },
  };
}

const tooFew = (from: string, shown: number, counted: number): TransientError =>
  new TransientError(
    `Cannot read all rows of "${from}", which name items: the export showed ${plural(shown, "row")}, and the service counts ` +
      `${counted}. The next sync reads them again. If it stays so, tell the service's owner`,
  );

/** The text of a field of a row; empty if there is none. */
function textIn(raw: RawLine, field: string): string {
  const { [field]: value } = JSON.parse(fromLatin1(raw)) as JsonObject;
  return typeof value === "string" ? value : "";
}
