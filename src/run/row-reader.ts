import { BodyError, DataError, NotFoundError } from "../base/errors.ts";
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
import type { Source } from "../sync/outcome.ts";
import { type RowStream, readRows } from "../sync/read-stream.ts";
import type { Row } from "../sync/service.ts";
import { filtersOf, type RowState } from "../sync/state.ts";
import type { Probed, Reader, RequestedStream } from "./reader.ts";
import type { Session } from "./session.ts";

const SAMPLE = 10_000;
const SAMPLE_BYTES = 67_108_864;

/** Reads the rows of a stream. */
export class RowReader implements Reader {
  readonly spec: RowStreamSpec;
  readonly #session: Session;

  constructor(spec: RowStreamSpec, session: Session) {
    this.spec = spec;
    this.#session = session;
  }

  /** The interface only names the lists of companies and sources: where there is none, the export may be there anyway. */
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
      throw new DataError(
        `Cannot read ${name}: an element of its list is no object. Tell the service's owner`,
      );
    return list === undefined ? { warning: cannotBeCounted(this.spec) } : { rows: list.total };
  }

  /**
   * Asks for the first row of the newest days' export. An export that fails may be read later, or page by page.
   * @param first an element of the list, which is newest first
   */
  async #probeExport(first: unknown): Promise<void> {
    const { name, cursorField, primaryKey, sampled } = this.spec;
    const { client } = this.#session;
    const [key = ""] = primaryKey;
    const row = objectOf(first);
    const newest = instant(String(row[cursorField ?? ""]));
    const from = dayOf(Number.isNaN(newest) ? client.now() : Math.min(newest, client.now()));
    const service = this.#session.streamApi(this.spec, { cursor: null, schema: null });
    let hasKey = true;
    try {
      for await (const [exported] of service.stream({ kind: "open", from, undated: false }, true)) {
        hasKey = exported?.key !== "";
        break;
      }
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      hasKey = false;
    }
    if (!hasKey && !sampled && first !== undefined && !(key in row))
      throw new DataError(`Cannot read ${name}: its rows have no "${key}". Tell the service's owner`);
  }

  async sample(schema: JsonSchema): Promise<readonly Record<string, unknown>[]> {
    const service = this.#session.streamApi(this.spec, { cursor: null, schema });
    const rows: Row[] = [];
    let bytes = 0;
    const firstPage = async (): Promise<void> => {
      rows.push(...(await service.page({ kind: "all" }, 1)).rows);
    };
    const exported = async (): Promise<void> => {
      for await (const batch of service.stream({ kind: "all" })) {
        rows.push(...batch);
        bytes += batch.reduce((sum, { raw }) => sum + raw.length, 0);
        if (rows.length >= SAMPLE || bytes >= SAMPLE_BYTES) break;
      }
    };
    if (this.spec.exportPath === null) await firstPage();
    else
      await exported().catch(async (error: unknown) => {
        if (!(error instanceof BodyError)) throw error;
        await firstPage().catch((other: unknown) => {
          throw other instanceof NotFoundError ? error : other;
        });
      });
    const visible = rows.filter(({ isSuppressed }) => isSuppressed !== true);
    return visible.slice(0, SAMPLE).map(({ raw }) => JSON.parse(fromLatin1(raw)));
  }

  /** Nothing is left to read of a full refresh that was delivered. */
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

  /** Decides from the incoming state how the stream is read. */
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
    const source = {
      ...reading,
      isExported: exportPath !== null,
      onMissingKey: this.#onMissingKey(configured),
    };
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
   * Documented records carry their date. Others are read in windows only where they carry one and the date filters prove
   * to be honoured: a count up to 1969 must be 0.
   */
  async reading(): Promise<Pick<Source, "isDated" | "isListed">> {
    const { isDated, cursorField } = this.spec;
    if (isDated || cursorField === null) return { isDated, isListed: true };
    try {
      const [first] = (await this.#session.look(this.spec, {})).elements;
      const hasDate = isObject(first) && cursorField in first;
      const before = hasDate
        ? await this.#session.look(this.spec, { discovered_to: "1969-12-31" })
        : undefined;
      return { isDated: before?.total === 0 && before.elements.length === 0, isListed: true };
    } catch (error) {
      if (error instanceof NotFoundError) return { isDated: false, isListed: false };
      throw error;
    }
  }

  /** Destinations that merge by key cannot take a row without one, and fail the complete sync. */
  #onMissingKey({ destinationSyncMode }: ConfiguredStream): Source["onMissingKey"] {
    if (!this.spec.sampled) return "reject";
    return destinationSyncMode?.endsWith("_dedup") === true ? "drop" : "pass";
  }
}

/** The message about a stream that has an export and no list. */
export const cannotBeCounted = ({ name, endpoint }: RowStreamSpec): string =>
  `Cannot count "${name}": the service has no list of them where endpoints.${endpoint} says, so the connector cannot tell ` +
  'whether an export was cut. Correct the path, or set "verify_counts" to false if there is no such list';
