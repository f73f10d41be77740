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

type SessionRuntime = Pick<Runtime, "clock" | "signal" | "environment" | "random">;

/** The options for the requests of a run. `burst`: the number of requests that may start at once. */
export type Pace = Pick<ClientOptions, "tries" | "patienceMs" | "isVerbose"> & { readonly burst?: number };

/** The connections of one run to the service: a pool of connections, and a limiter for each API key. */
export class Session {
  /** The client of the Public API. */
  readonly client: Client;
  readonly config: Config;
  /** Aborts the open requests. */
  readonly signal: AbortSignal;
  /** The beginning of the run (ms) by the monotonic clock. */
  readonly began: number;
  /** The usage of both APIs so far. */
  readonly usage = noUsage();
  /** Digests of the address of the Public API, and of the id of its key. */
  readonly service: string;
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

  /** The service for the rows of one stream. @param suppresses whether to suppress rows of people in `suppress_file` */
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

  /** The clients of both APIs. Without an External API in the config, no stream uses `externalApi`. */
  get clients(): { readonly publicApi: Client; readonly externalApi: Client } {
    const { externalApi: api } = this.config;
    if (api !== null) this.#external ??= this.#openClient(api.apiUrl, api.apiKey, this.#named(EXTERNAL_API));
    return { publicApi: this.client, externalApi: this.#external ?? this.client };
  }

  /** Adds to the names of an API's settings where the key comes from, for the remedy of a wrong key. */
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
    const openPool = (reuse: boolean): Dispatcher => openDispatcher(base, environment, { reuse, insecure });
    return new Client({
      ...{ base, apiKey, clock, signal, random, notify: this.notify, usage: this.usage },
      place: { host: base.host, settings, proxy, caProblems: () => caProblems(environment) },
      dispatcher: (reuse) => once(this.#dispatchers, `${base.origin} ${reuse}`, () => openPool(reuse)),
      limiter: once(this.#limiters, apiKey, () => new Limiter(requestsPerMinute, clock, burst)),
      idleTimeoutMs: idleTimeoutSeconds * 1000,
      ...patience,
    });
  }

  /** Requests one row of a stream. @throws the reason why the key cannot read the stream */
  look(spec: RowStreamSpec, query: Query): Promise<List> {
    const endpoint = { spec, paths: this.config.endpoints, filters: this.filters(spec) };
    return readList(this.client, endpoint, `read ${spec.name}`, { limit: "1", ...query });
  }

  /** The filters of the config; empty for a stream without an export. */
  filters({ exportPath }: RowStreamSpec): Query {
    return exportPath === null ? {} : queryOf(filtersOf(this.config));
  }
}

/** The value of a key, made at the first call. */
function once<Value>(values: Map<string, Value>, key: string, make: () => Value): Value {
  const value = values.get(key) ?? make();
  values.set(key, value);
  return value;
}
