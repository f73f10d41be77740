import type { Dispatcher } from "undici";
import type { Config } from "../config.ts";
import { NotFoundError } from "../errors.ts";
import { LinePattern } from "../source/line-pattern.ts";
import { RowCheck } from "../source/row-check.ts";
import {
  type JobStreamSpec,
  listPathOf,
  type RowStreamSpec,
  STREAMS,
  type StreamSpec,
  streamsOf,
} from "../source/streams.ts";
import type { Notice } from "../sync/event.ts";
import type { Family } from "../sync/job-family.ts";
import type { Ports } from "../sync/ports.ts";
import { BEGINNING } from "../sync/window.ts";
import { Client, type Query } from "./client.ts";
import type { Clock } from "./clock.ts";
import { type Environment, openDispatcher } from "./dispatcher.ts";
import { openFamily } from "./families.ts";
import { probeExternal, probePublic } from "./job-probe.ts";
import { Limiter } from "./limiter.ts";
import { parseList, servicePorts } from "./ports.ts";
import type { RowReader } from "./row.ts";

/** What the process lends to a session with the service. */
export type World = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly environment: Environment;
  readonly random: () => number;
};

/** How a stream's rows are had: in windows of days, or whole; and whether there is a list beside the export. */
export type Reading = { readonly dated: boolean; readonly listed: boolean };

/** One run's dealings with the service: a pool of connections, a limiter for each key. */
export class Session {
  /** Of the Public API. */
  readonly client: Client;
  /** The streams that the config has. */
  readonly streams: readonly StreamSpec[];
  readonly #config: Config;
  readonly #world: World;
  readonly #note: (notice: Notice) => void;
  readonly #tries: number | undefined;
  readonly #limiters = new Map<string, Limiter>();
  readonly #dispatchers = new Map<string, Dispatcher>();
  #external: Client | undefined;

  /** @param tries how often a request may fail before it is given up */
  constructor(config: Config, world: World, note: (notice: Notice) => void, tries?: number) {
    this.#config = config;
    this.#world = world;
    this.#note = note;
    this.#tries = tries;
    this.streams = streamsOf(config);
    this.client = this.#openClient(config.baseUrl, config.apiKey);
  }

  /**
   * The jobs of a stream. `check` is told of each record.
   * @param began when the run began, by the monotonic clock
   */
  family(spec: JobStreamSpec, check: RowCheck, began: number): Family {
    const { clock, signal } = this.#world;
    return openFamily(spec, {
      config: this.#config,
      publicApi: this.client,
      externalApi: this.#externalApi(),
      check,
      clock,
      signal,
      companies: () => this.#companyDomains(),
      endsAt: began + (this.#config.maxRunSeconds ?? Number.POSITIVE_INFINITY) * 1000,
    });
  }

  ports(
    spec: RowStreamSpec,
    cursor: string | null,
    check: RowCheck,
    withoutKey: RowReader["withoutKey"],
  ): Ports {
    const [key = ""] = spec.primaryKey;
    const pattern = new LinePattern(check.fields, key, cursor);
    const endpoint = {
      stream: spec.name,
      list: listPathOf(spec, this.#config.endpoints),
      export: spec.exportPath ?? undefined,
      filters: this.#filters(spec),
      verify: this.#config.verifyCounts,
      reader: {
        key,
        cursor,
        withoutKey,
        keyless: () => check.noteKeyless(),
        match: (line: string) => pattern.match(line),
        check: (row: Readonly<Record<string, unknown>>) => {
          if (check.note(row)) pattern.learn(Object.keys(row));
        },
        replaced: () => check.noteReplaced(),
      },
    };
    return servicePorts(this.client, endpoint, this.#note);
  }

  /**
   * Asks for one row of a stream, or for a job that nobody submitted; throws what keeps this key from reading it. Null:
   * there is no count, or no such list, which the interface only names; the export may be there all the same.
   */
  async probe(spec: StreamSpec): Promise<number | null> {
    if (spec.reading === "job") return await this.#probeJobs(spec);
    try {
      return (await this.#look(spec, {})).total;
    } catch (error) {
      if (error instanceof NotFoundError && spec.endpoint !== null && spec.exportPath !== null) return null;
      throw error;
    }
  }

  /**
   * Companies are read in windows only where their records carry a date and the date filters prove to be honoured:
   * a count up to the beginning must be 0.
   */
  async readingOf(spec: RowStreamSpec): Promise<Reading> {
    if (spec.name === "people") return { dated: true, listed: true };
    try {
      const { elements } = await this.#look(spec, {});
      const [first] = elements;
      const { cursorField } = spec;
      if (cursorField === null || typeof first !== "object" || first === null || !(cursorField in first)) {
        return { dated: false, listed: true };
      }
      const { total } = await this.#look(spec, { discovered_to: BEGINNING });
      return { dated: total === 0, listed: true };
    } catch (error) {
      if (error instanceof NotFoundError) return { dated: false, listed: false };
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.destroy()));
  }

  async #probeJobs({ setting }: JobStreamSpec): Promise<null> {
    if (setting === "emailCheck") await probePublic(this.client);
    else await probeExternal(this.#externalApi());
    return null;
  }

  /** Only streams that the config cannot have without an External API ask for it; the others are content with the Public one. */
  #externalApi(): Client {
    const { externalApi } = this.#config;
    if (externalApi === null) return this.client;
    this.#external ??= this.#openClient(externalApi.apiUrl, externalApi.apiKey);
    return this.#external;
  }

  #openClient(base: URL, apiKey: string): Client {
    const { clock, signal, random } = this.#world;
    return new Client({
      base,
      apiKey,
      dispatcher: this.#dispatcher(base, true),
      fresh: () => this.#dispatcher(base, false),
      limiter: this.#limiter(apiKey),
      clock,
      signal,
      random,
      note: this.#note,
      idleTimeoutMs: this.#config.idleTimeoutSeconds * 1000,
      ...(this.#tries !== undefined && { tries: this.#tries }),
    });
  }

  #limiter(apiKey: string): Limiter {
    const limiter =
      this.#limiters.get(apiKey) ?? new Limiter(this.#config.requestsPerMinute, this.#world.clock);
    this.#limiters.set(apiKey, limiter);
    return limiter;
  }

  #dispatcher(base: URL, reuse: boolean): Dispatcher {
    const kind = `${base.protocol} ${reuse}`;
    const dispatcher = this.#dispatchers.get(kind) ?? openDispatcher(base, this.#world.environment, reuse);
    this.#dispatchers.set(kind, dispatcher);
    return dispatcher;
  }

  async *#companyDomains(): AsyncGenerator<string> {
    const companies = STREAMS[1];
    const ports = this.ports(companies, null, new RowCheck(companies.name, null), "pass");
    for await (const rows of ports.stream({ kind: "all" })) {
      for (const { key } of rows) yield Buffer.from(key, "latin1").toString("utf8");
    }
  }

  async #look(spec: RowStreamSpec, query: Query): Promise<ReturnType<typeof parseList>> {
    const path = listPathOf(spec, this.#config.endpoints);
    const filtered = { limit: "1", ...this.#filters(spec), ...query };
    const answer = await this.client.getJson(`read ${spec.name}`, path, filtered, (value) =>
      parseList(value, spec.name),
    );
    return answer.value;
  }

  /** The filters of the config; a list without days has none. */
  #filters({ exportPath }: RowStreamSpec): Query {
    const { sourceSlug, isUser } = this.#config;
    if (exportPath === null) return {};
    return {
      ...(sourceSlug !== null && { source: sourceSlug }),
      ...(isUser !== "all" && { is_user: isUser }),
    };
  }
}
