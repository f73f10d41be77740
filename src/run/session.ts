import { ConfigError, NotFoundError } from "../base/errors.ts";
import { isObject } from "../base/json.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { FieldFilter } from "../catalog/field-rules.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import {
  type JobStreamSpec,
  listPathOf,
  type RowStreamSpec,
  STREAMS,
  type StreamSpec,
  streamsOf,
} from "../catalog/streams.ts";
import { keyDigest, serviceDigest } from "../config/address.ts";
import type { Config } from "../config/config.ts";
import { type Jobs, openJobs, probeJobs, type SelectedJobs } from "../jobs/jobs.ts";
import { Privacy } from "../privacy/privacy.ts";
import { Client, type Query } from "../service/client.ts";
import { type Dispatcher, openDispatcher, proxyVariable } from "../service/dispatcher.ts";
import { EXTERNAL_API, PUBLIC_API, type SettingNames } from "../service/error-table.ts";
import { Limiter } from "../service/limiter.ts";
import { RowParser, type RowRules } from "../service/rows.ts";
import { notThere, parseList, streamApi } from "../service/service-api.ts";
import { sumOfUsages, type Usage } from "../service/usage.ts";
import { stateKey, streamOfKey } from "../state/envelopes.ts";
import { refuseOtherService } from "../state/resume.ts";
import type { Event, Notice } from "../sync/event.ts";
import type { Service } from "../sync/service.ts";
import type { Runtime } from "./runtime.ts";

/** What a session needs of the process. */
type SessionRuntime = Pick<Runtime, "clock" | "signal" | "environment" | "random"> &
  Partial<Pick<Runtime, "pid" | "processes">>;

/** How often a request may fail before it is given up, and how many may start at once; undefined: what the client thinks good. */
export type Pace = { readonly tries?: number | undefined; readonly burst?: number | undefined };

/** How a stream's rows are read: in windows of days, or all at once; and whether there is a list, and so counts and pages. */
export type Reading = { readonly isDated: boolean; readonly isListed: boolean };

/** What a person should know of a stream that has an export and no list. */
export const cannotBeCounted = ({ name, endpoint }: RowStreamSpec): string =>
  `Cannot count "${name}": the service has no list of them where endpoints.${endpoint} says, so an export that was cut cannot ` +
  'be told from a complete one. Correct the path, or set "verify_counts" to false if there is no such list';

/** How many rows a stream has; null if the service does not say, undefined if there is no list, only an export. */
export type Probed = number | null | undefined;

/** One run's dealings with the service: a pool of connections, a limiter for each key. */
export class Session {
  /** Of the Public API. */
  readonly client: Client;
  /** The streams that the config has. */
  readonly streams: readonly StreamSpec[];
  readonly privacy: FieldFilter;
  readonly config: Config;
  /** Aborts what is under way at the service. */
  readonly signal: AbortSignal;
  /** When the run began, by the monotonic clock. */
  readonly began: number;
  /** Digest of the address of the Public API. */
  readonly service: string;
  /** Digest of the id of the Public API's key. */
  readonly keyId: string;
  readonly #runtime: SessionRuntime;
  readonly #notify: (notice: Notice) => void;
  readonly #pace: Pace;
  readonly #limiters = new Map<string, Limiter>();
  readonly #dispatchers = new Map<string, Dispatcher>();
  #external: Client | undefined;
  #jobs: Jobs | undefined;

  constructor(config: Config, runtime: SessionRuntime, notify: (notice: Notice) => void, pace: Pace = {}) {
    this.config = config;
    this.service = serviceDigest(config.baseUrl);
    this.keyId = keyDigest(config.apiKey);
    this.#runtime = runtime;
    this.signal = runtime.signal;
    this.began = runtime.clock.monotonic();
    this.#notify = notify;
    this.#pace = pace;
    this.streams = streamsOf(config);
    this.privacy = new Privacy(config);
    this.client = this.#openClient(config.baseUrl, config.apiKey, this.#named(PUBLIC_API));
  }

  /**
   * Refuses states of other services, takes the locks of the jobs that are asked for, and reads what is remembered of them,
   * before any request.
   * @param streams undefined: every stream that the config has, or those that are named
   * @param states what the state says of each stream
   * @param checkState throws if another run has taken the state that this one saves; called before each submission
   */
  async openJobs(
    streams: readonly (SelectedJobs & Pick<ConfiguredStream, "namespace">)[] | undefined,
    names: readonly string[],
    states: ReadonlyMap<string, unknown>,
    checkState: () => Promise<void>,
  ): Promise<void> {
    const byName = new Map(statesByName(states));
    for (const { name, namespace } of streams ?? []) {
      const own = states.get(stateKey(name, namespace));
      if (own !== undefined) byName.set(name, own);
    }
    const every = this.streams
      .filter(({ name }) => names.length === 0 || names.includes(name))
      .map(({ name }) => ({ name, syncMode: "incremental" }));
    const dated = this.streams.flatMap(({ name, reading }) => (reading === "dated" ? [name] : []));
    for (const { name, syncMode } of streams ?? every) {
      const goesOn = dated.includes(name) && syncMode === "incremental";
      if (goesOn) refuseOtherService(name, byName.get(name), this.service);
    }
    this.#jobs = await openJobs(this.config, streams ?? every, byName, {
      ...this.#runtime,
      ...this.#clients,
      pid: this.#runtime.pid ?? 0,
      endsAt: this.began + (this.config.maxRunSeconds ?? Number.POSITIVE_INFINITY) * 1000,
      checkState,
      streamApi: (spec, rules) => this.streamApi(spec, rules),
      filtersOf: (spec) => this.#filters(spec),
      echoOf: (stream, field) => this.privacy.replacementFor(stream, field),
      notify: (text) => this.#notify({ kind: "log", level: "warn", text }),
    });
  }

  /** The events of a stream of jobs. */
  readJobs(spec: JobStreamSpec, schema: JsonSchema | null): AsyncGenerator<Event> {
    if (this.#jobs === undefined) throw new Error("Cannot work on jobs: they were not opened");
    return this.#jobs.read(spec, schema);
  }

  /** The service as the core sees it, for the rows of one stream. @param holds whether suppressed rows are held back */
  streamApi(
    spec: RowStreamSpec,
    rules: Omit<RowRules, "key">,
    filters = this.#filters(spec),
    holds = true,
  ): Service {
    const [key = ""] = spec.primaryKey;
    const suppression = holds ? this.config.suppressed.groupsOf(spec.name) : undefined;
    const endpoint = {
      stream: spec.name,
      list: listPathOf(spec, this.config.endpoints),
      listSetting: listSettingOf(spec),
      sources: this.config.endpoints.sources,
      export: spec.exportPath ?? undefined,
      filters,
      verify: this.config.verifyCounts,
      parser: new RowParser({ key, ...rules, suppression }),
    };
    return streamApi(this.client, endpoint, this.#notify);
  }

  /**
   * Asks for one row of a stream, or for a job that nobody submitted; throws what keeps this key from reading it. The
   * interface only names the lists of companies and sources: where there is none, the export may be there anyway.
   */
  async probe(spec: StreamSpec): Promise<Probed> {
    if (spec.reading === "job") return await probeJobs(spec, this.#clients).then(() => null);
    try {
      return (await this.#look(spec, {})).total;
    } catch (error) {
      if (error instanceof NotFoundError && spec.endpoint !== null && spec.exportPath !== null)
        return undefined;
      throw error;
    }
  }

  /**
   * Documented records carry their date. Others are read in windows only where they carry one and the date filters prove
   * to be honoured: a count up to 1969 must be 0.
   */
  async readingOf(spec: RowStreamSpec): Promise<Reading> {
    const { reading, sampled, cursorField } = spec;
    if (reading === "list" || !sampled) return { isDated: reading === "dated", isListed: true };
    try {
      const [first] = (await this.#look(spec, {})).elements;
      const hasDate = cursorField !== null && isObject(first) && cursorField in first;
      const before = hasDate ? await this.#look(spec, { discovered_to: "1969-12-31" }) : undefined;
      return { isDated: before?.total === 0 && before.elements.length === 0, isListed: true };
    } catch (error) {
      if (error instanceof NotFoundError) return { isDated: false, isListed: false };
      throw error;
    }
  }

  /** What the clients of both APIs have done so far. */
  get usage(): Usage {
    return sumOfUsages([this.client, this.#external].flatMap((client) => client?.usage ?? []));
  }

  async close(): Promise<void> {
    await this.#jobs?.close();
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.destroy()));
  }

  /** Only streams that the config cannot have without an External API ask for it; the others are content with the Public one. */
  get #clients(): { readonly publicApi: Client; readonly externalApi: Client } {
    const { externalApi: api } = this.config;
    if (api !== null) this.#external ??= this.#openClient(api.apiUrl, api.apiKey, this.#named(EXTERNAL_API));
    return { publicApi: this.client, externalApi: this.#external ?? this.client };
  }

  /** The names of an API's settings; what is said of a wrong key begins with where that key came from. */
  #named(names: SettingNames): SettingNames {
    const origin = this.config.origins.get(names.key);
    if (origin === undefined) return names;
    const key = origin.startsWith("the environment variable ") ? "that variable" : names.key;
    return { ...names, newKey: `The key is from ${origin}. ${names.newKey}`, key };
  }

  #openClient(base: URL, apiKey: string, settings: SettingNames): Client {
    const { clock, signal, random, environment } = this.#runtime;
    const { requestsPerMinute, allowInsecureHttp: insecure, idleTimeoutSeconds } = this.config;
    const { tries, burst } = this.#pace;
    const dispatcher = (reuse: boolean): Dispatcher =>
      once(this.#dispatchers, `${base.origin} ${reuse}`, () =>
        openDispatcher(base, environment, { reuse, insecure }),
      );
    return new Client({
      base,
      apiKey,
      settings,
      proxy: proxyVariable(base, environment),
      dispatcher: dispatcher(true),
      fresh: () => dispatcher(false),
      limiter: once(this.#limiters, apiKey, () => new Limiter(requestsPerMinute, clock, burst)),
      clock,
      signal,
      random,
      notify: this.#notify,
      idleTimeoutMs: idleTimeoutSeconds * 1000,
      ...(tries !== undefined && { tries }),
    });
  }

  async #look(spec: RowStreamSpec, query: Query): Promise<ReturnType<typeof parseList>> {
    const path = listPathOf(spec, this.config.endpoints);
    const filtered = { limit: "1", ...this.#filters(spec), ...query };
    const what = `read ${spec.name}`;
    const answer = this.client.getJson(what, path, filtered, (value) => parseList(value, spec.name));
    return (await answer.catch(notThere(what, path, listSettingOf(spec)))).value;
  }

  /** The filters of the config; a list without days has none. */
  #filters({ exportPath }: RowStreamSpec): Query {
    const { sourceSlug, isUser } = this.config;
    if (exportPath === null) return {};
    return {
      ...(sourceSlug !== null && { source: sourceSlug }),
      ...(isUser !== "all" && { is_user: isUser }),
    };
  }
}

/** The value of a key, which is made at most once. */
function once<Value>(values: Map<string, Value>, key: string, make: () => Value): Value {
  const value = values.get(key) ?? make();
  values.set(key, value);
  return value;
}

/** What was paid for counts whatever namespace a state says. */
export const statesByName = (states: ReadonlyMap<string, unknown>): ReadonlyMap<string, unknown> =>
  new Map([...states].map(([key, state]) => [streamOfKey(key), state]));

/** Whether the key's plan does not cover a stream. */
export const isNotOnPlan = (error: unknown): error is ConfigError =>
  error instanceof ConfigError && error.scope === "stream";

/** Finds a stream of a config. Throws ConfigError. @param advice what to do about a name that no stream has */
export function streamNamed(name: string, config: Config, advice: string): StreamSpec {
  const spec: StreamSpec | undefined = STREAMS.find((stream) => stream.name === name);
  const streams = streamsOf(config);
  if (spec === undefined) {
    const names = streams.map((stream) => stream.name).join(", ");
    throw new ConfigError(
      `Cannot read the stream "${name}": there is no such stream, only ${names}. ${advice}`,
    );
  }
  if ("setting" in spec && !streams.includes(spec)) throw notConfigured(spec);
  return spec;
}

function notConfigured({ name, setting }: JobStreamSpec): ConfigError {
  const property = setting.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return new ConfigError(
    `Cannot read the stream "${name}": it is there only when ${property} is set in the config. Set it, or take the stream out of the sync`,
  );
}

const listSettingOf = ({ endpoint }: RowStreamSpec): string | null =>
  endpoint === null ? null : `endpoints.${endpoint}`;
