import { BodyError, ConfigError, DataError, NotFoundError } from "../base/errors.ts";
import { isObject, objectOf } from "../base/json.ts";
import { fromLatin1 } from "../base/text.ts";
import { dayOf, instant } from "../base/time.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { RowStreamSpec } from "../catalog/streams.ts";
import type { RowCheck } from "../service/rows.ts";
import { withoutTotal } from "../service/service-api.ts";
import { isFullRefresh, type Resume, resume } from "../state/resume.ts";
import { type Event, warning } from "../sync/event.ts";
import type { Source } from "../sync/prepare.ts";
import { type RowStream, readRows } from "../sync/read-stream.ts";
import type { Row } from "../sync/service.ts";
import { filtersOf, type RowState } from "../sync/state.ts";
import type { Probed, Reader, RequestedStream } from "./reader.ts";
import type { Session } from "./session.ts";

const OWNER = "Tell the service's owner";
const SAMPLE_ROWS = 10_000;
const SAMPLE_BYTES = 67_108_864;

/** Reads the rows of a stream. */
export class RowReader implements Reader {
  readonly spec: RowStreamSpec;
  readonly #session: Session;

  constructor(spec: RowStreamSpec, session: Session) {
    this.spec = spec;
    this.#session = session;
  }

  /** Requests the list. The path of the list is an assumption, so a stream with an export may have no list there. */
  async probe(isThorough = false): Promise<Probed> {
    const { name, endpoint, exportPath } = this.spec;
    const list = await this.#session.look(this.spec, {}).catch((error: unknown) => {
      if (error instanceof NotFoundError && endpoint !== null && exportPath !== null) return undefined;
      throw error;
    });
    const [first] = list?.elements ?? [];
    if (list?.total === null && exportPath !== null && this.#session.config.verifyCounts)
      throw new DataError(withoutTotal(name));
    if (exportPath !== null && isThorough) await this.#probeExport(first);
    if (exportPath === null && first !== undefined && !isObject(first))
      throw new DataError(`Cannot read ${name}: its list has an element that is not an object. ${OWNER}`);
    return list === undefined ? { warning: cannotBeCounted(this.spec) } : { rows: list.total };
  }

  /**
   * Checks the key of the first row in the export of the newest days. A failed export is no error, because pages may be read.
   * @param first the newest element of the list
   */
  async #probeExport(first: unknown): Promise<void> {
    const { name, cursorField, primaryKey, sampled } = this.spec;
    const { client } = this.#session;
    const [key = ""] = primaryKey;
    const row = objectOf(first);
    const cursor = row[cursorField ?? ""];
    const newest = typeof cursor === "object" ? Number.NaN : instant(String(cursor));
    const from = dayOf(Number.isNaN(newest) ? client.now() : Math.min(newest, client.now()));
    const service = this.#session.streamApi(this.spec, { cursor: null, schema: null });
    let hasKey = true;
    try {
      for await (const [exported] of service.stream({ kind: "open", from, undated: false }, true)) {
        hasKey = exported?.key !== "";
        break;
      }
    } catch (error) {
      // The key can read the list but not the export. Without the scope, the stream is read, and the run fails.
      if (error instanceof ConfigError && error.scope === "stream") throw new ConfigError(error.message);
      if (!(error instanceof BodyError)) throw error;
      hasKey = false;
    }
    if (!hasKey && !sampled && first !== undefined && !(key in row))
      throw new DataError(`Cannot read ${name}: its rows have no "${key}". ${OWNER}`);
  }

  async sample(schema: JsonSchema): Promise<readonly Record<string, unknown>[]> {
    const service = this.#session.streamApi(this.spec, { cursor: null, schema });
    const rows: Row[] = [];
    const addPage = async (): Promise<void> => {
      rows.push(...(await service.page({ kind: "all" }, 1)).rows);
    };
    const addExport = async (): Promise<void> => {
      let bytes = 0;
      for await (const batch of service.stream({ kind: "all" })) {
        rows.push(...batch);
        bytes += batch.reduce((sum, { raw }) => sum + raw.length, 0);
        if (rows.length >= SAMPLE_ROWS || bytes >= SAMPLE_BYTES) break;
      }
    };
    if (this.spec.exportPath === null) await addPage();
    else
      await addExport().catch(async (error: unknown) => {
        if (!(error instanceof BodyError)) throw error;
        await addPage().catch((other: unknown) => {
          throw other instanceof NotFoundError ? error : other;
        });
      });
    const visible = rows.filter(({ isSuppressed }) => isSuppressed !== true);
    return visible.slice(0, SAMPLE_ROWS).map(({ raw }) => JSON.parse(fromLatin1(raw)));
  }

  /** Reads the stream. If an earlier run delivered the full refresh of the catalog, no row is read. */
  async *read(asked: RequestedStream, check: RowCheck, savedState: unknown): AsyncGenerator<Event> {
    const { name: stream } = this.spec;
    const { saved, open } = await this.resume(asked.configured, savedState, check);
    if (saved.kind === "delivered") {
      yield { kind: "checkpoint", stream, state: saved.state };
      yield { kind: "close", stream, complete: true };
      return;
    }
    const run = open(saved.state);
    if (saved.why !== undefined) yield warning(saved.why);
    if (!run.source.isListed) yield warning(cannotBeCounted(this.spec));
    yield* readRows(run);
  }

  /** Finds in the incoming state where the stream continues. */
  async resume(
    configured: ConfiguredStream,
    savedState: unknown,
    check: RowCheck = { schema: null },
  ): Promise<{ readonly saved: Resume; readonly open: (state: RowState) => RowStream }> {
    const { config, began, service, keyId } = this.#session;
    const { name, cursorField, exportPath } = this.spec;
    const reading = await this.reading();
    const { isDated } = reading;
    const isLimited = config.maxRunSeconds !== null && !isFullRefresh(configured);
    const onMissingKey = this.#onMissingKey(configured);
    const source = { ...reading, isExported: exportPath !== null, onMissingKey };
    return {
      saved: resume(configured, savedState, isDated, filtersOf(config), service),
      open: (state) => ({
        ...{ stream: name, source, state, settings: config, key: keyId },
        service: this.#session.streamApi(this.spec, { cursor: isDated ? cursorField : null, ...check }),
        endsAt: isLimited ? began + config.maxRunSeconds * 1000 : undefined,
      }),
    };
  }

  /**
   * Finds out whether the stream can be read in windows, and whether it has a list. Undocumented rows need a date for windows. The
   * service must also obey date filters: a count up to 1969 must be 0.
   */
  async reading(): Promise<Pick<Source, "isDated" | "isListed">> {
    const { isDated, cursorField } = this.spec;
    if (isDated || cursorField === null) return { isDated, isListed: true };
    try {
      const [first] = (await this.#session.look(this.spec, {})).elements;
      if (!isObject(first) || !(cursorField in first)) return { isDated: false, isListed: true };
      const before = await this.#session.look(this.spec, { discovered_to: "1969-12-31" });
      return { isDated: before.total === 0 && before.elements.length === 0, isListed: true };
    } catch (error) {
      if (error instanceof NotFoundError) return { isDated: false, isListed: false };
      throw error;
    }
  }

  /** Drops rows without a key if the destination merges by key. A row without a key would fail the whole sync. */
  #onMissingKey({ destinationSyncMode }: ConfiguredStream): Source["onMissingKey"] {
    if (!this.spec.sampled) return "reject";
    return destinationSyncMode?.endsWith("_dedup") === true ? "drop" : "pass";
  }
}

/** The message about a stream with an export and without a list. */
export const cannotBeCounted = ({ name, endpoint }: RowStreamSpec): string =>
  `Cannot count "${name}": the service has no list of them where endpoints.${endpoint} says, so the connector cannot tell ` +
  'whether an export was cut. Correct the path, or set "verify_counts" to false if there is no such list';
