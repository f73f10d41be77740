import type { Dispatcher } from "undici";
import type { Config } from "../config.ts";
import { NotFoundError } from "../errors.ts";
import type { RowCheck } from "../source/row-check.ts";
import { listPathOf, type StreamSpec } from "../source/streams.ts";
import type { Notice } from "../sync/event.ts";
import type { Ports } from "../sync/ports.ts";
import { BEGINNING } from "../sync/window.ts";
import { Client, type Query } from "./client.ts";
import type { Clock } from "./clock.ts";
import { type Environment, openDispatcher } from "./dispatcher.ts";
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

/** One run's dealings with the service: one pool of connections, one limiter for the key. */
export class Session {
  readonly client: Client;
  readonly #config: Config;
  readonly #dispatcher: Dispatcher;
  readonly #world: World;
  readonly #note: (notice: Notice) => void;

  /** @param tries how often a request may fail before it is given up */
  constructor(config: Config, world: World, note: (notice: Notice) => void, tries?: number) {
    this.#config = config;
    this.#world = world;
    this.#note = note;
    this.#dispatcher = openDispatcher(config.baseUrl, world.environment);
    this.client = new Client({
      base: config.baseUrl,
      apiKey: config.apiKey,
      dispatcher: this.#dispatcher,
      limiter: new Limiter(config.requestsPerMinute, world.clock),
      clock: world.clock,
      signal: world.signal,
      random: world.random,
      note,
      idleTimeoutMs: config.idleTimeoutSeconds * 1000,
      ...(tries !== undefined && { tries }),
    });
  }

  ports(
    spec: StreamSpec,
    cursor: string | null,
    check: RowCheck,
    withoutKey: RowReader["withoutKey"],
  ): Ports {
    const endpoint = {
      stream: spec.name,
      list: listPathOf(spec, this.#config.endpoints),
      export: spec.exportPath ?? undefined,
      filters: this.#filters(spec),
      verify: this.#config.verifyCounts,
      reader: {
        key: spec.primaryKey[0] ?? "",
        cursor,
        withoutKey,
        keyless: () => check.noteKeyless(),
        check: (row: Readonly<Record<string, unknown>>) => check.note(row),
        replaced: () => check.noteReplaced(),
      },
    };
    return servicePorts(this.client, endpoint, () => this.#world.clock.monotonic(), this.#note);
  }

  /**
   * Asks for one row of a stream; throws what keeps this key from reading it. Null: the service did not count, or it
   * has no such list, which the interface only names; the export may be there all the same.
   */
  async probe(spec: StreamSpec): Promise<number | null> {
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
  async readingOf(spec: StreamSpec): Promise<Reading> {
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
    await this.#dispatcher.destroy();
  }

  async #look(spec: StreamSpec, query: Query): Promise<ReturnType<typeof parseList>> {
    const path = listPathOf(spec, this.#config.endpoints);
    const filtered = { limit: "1", ...this.#filters(spec), ...query };
    const answer = await this.client.getJson(`read ${spec.name}`, path, filtered, (value) =>
      parseList(value, spec.name),
    );
    return answer.value;
  }

  /** The filters of the config; a list without days has none. */
  #filters({ exportPath }: StreamSpec): Query {
    const { sourceSlug, isUser } = this.#config;
    if (exportPath === null) return {};
    return {
      ...(sourceSlug !== null && { source: sourceSlug }),
      ...(isUser !== "all" && { is_user: isUser }),
    };
  }
}
