import type { RowStreamSpec } from "../catalog/streams.ts";
import { keyDigest, serviceDigest } from "../config/address.ts";
import type { Config } from "../config/config.ts";
import { Client, type ClientOptions, type Query } from "../service/client.ts";
import { type Dispatcher, openDispatcher } from "../service/dispatcher.ts";
import { EXTERNAL_API, PUBLIC_API, type SettingNames } from "../service/error-table.ts";
import { Limiter } from "../service/limiter.ts";
import { proxyVariable } from "../service/proxy.ts";
import { RowParser, type RowRules } from "../service/rows.ts";
import { type List, readList, StreamApi } from "../service/service-api.ts";
import { caProblems } from "../service/trust.ts";
import { noUsage } from "../service/usage.ts";
import type { Notice } from "../sync/event.ts";
import type { Service } from "../sync/service.ts";
import { filtersOf, queryOf } from "../sync/state.ts";
import type { Runtime } from "./runtime.ts";

/** The parts of the process that a session uses. */
type SessionRuntime = Pick<Runtime, "clock" | "signal" | "environment" | "random">;

/** How the requests of a run are made; undefined: as a sync makes them. `burst`: how many may start at once. */
export type Pace = Pick<ClientOptions, "tries" | "patienceMs" | "isVerbose"> & { readonly burst?: number };

/** One run's dealings with the service: a pool of connections, a limiter for each key. */
export class Session {
  /** The client of the Public API. */
  readonly client: Client;
  readonly config: Config;
  /** Aborts what is under way at the service. */
  readonly signal: AbortSignal;
  /** When the run began, by the monotonic clock. */
  readonly began: number;
  /** The usage of both APIs so far. */
  readonly usage = noUsage();
  /** Digest of the address of the Public API. */
  readonly service: string;
  /** Digest of the id of the Public API's key. */
  readonly keyId: string;
  readonly #runtime: SessionRuntime;
  readonly notify: (notice: Notice) => void;
  readonly #pace: Pace;
  readonly #limiters = new Map<string, Limiter>();
  readonly #dispatchers = new Map<string, Dispatcher>();
  #external: Client | undefined;

  constructor(config: Config, runtime: SessionRuntime, notify: (notice: Notice) => void, pace: Pace = {}) {
    this.config = config;
    this.service = serviceDigest(config.baseUrl);
    this.keyId = keyDigest(config.apiKey);
    this.#runtime = runtime;
    this.signal = runtime.signal;
    this.began = runtime.clock.monotonic();
    this.notify = notify;
    this.#pace = pace;
    this.client = this.#openClient(config.baseUrl, config.apiKey, this.#named(PUBLIC_API));
  }

  /** The service as the core sees it, for the rows of one stream. @param suppresses whether suppressed rows are left out */
  streamApi(
    spec: RowStreamSpec,
    rules: Omit<RowRules, "key">,
    filters = this.filters(spec),
    suppresses = true,
  ): Service {
    const [key = ""] = spec.primaryKey;
    const suppression = suppresses ? this.config.suppressed.groupsOf(spec.name) : undefined;
    const { endpoints: paths, verifyCounts: verify } = this.config;
    const parser = new RowParser({ key, ...rules, suppression });
    const notify = (notice: Notice): void => this.notify({ ...notice, stream: spec.name });
    return new StreamApi(this.client, { spec, paths, filters, parser, verify }, notify);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.destroy()));
  }

  /** Only streams that the config cannot have without an External API ask for it; the others are content with the Public one. */
  get clients(): { readonly publicApi: Client; readonly externalApi: Client } {
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
    const { burst, ...patience } = this.#pace;
    const proxy = proxyVariable(base, environment);
    return new Client({
      base,
      apiKey,
      place: {
        ...{ host: base.host, settings, caProblems: () => caProblems(environment) },
        ...(proxy !== undefined && { proxy }),
      },
      dispatcher: (reuse) =>
        once(this.#dispatchers, `${base.origin} ${reuse}`, () =>
          openDispatcher(base, environment, { reuse, insecure }),
        ),
      limiter: once(this.#limiters, apiKey, () => new Limiter(requestsPerMinute, clock, burst)),
      clock,
      signal,
      random,
      notify: this.notify,
      usage: this.usage,
      idleTimeoutMs: idleTimeoutSeconds * 1000,
      ...patience,
    });
  }

  /** Asks for one row of a stream. @throws what keeps this key from reading it */
  look(spec: RowStreamSpec, query: Query): Promise<List> {
    const endpoint = { spec, paths: this.config.endpoints, filters: this.filters(spec) };
    return readList(this.client, endpoint, `read ${spec.name}`, { limit: "1", ...query });
  }

  /** The filters of the config; a stream that is only listed has none. */
  filters({ exportPath }: RowStreamSpec): Query {
    return exportPath === null ? {} : queryOf(filtersOf(this.config));
  }
}

/** The value of a key, which is made at most once. */
function once<Value>(values: Map<string, Value>, key: string, make: () => Value): Value {
  const value = values.get(key) ?? make();
  values.set(key, value);
  return value;
}
