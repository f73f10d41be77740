import { NotFoundError } from "../base/errors.ts";
import { fromLatin1 } from "../base/text.ts";
import { fieldNamesOf } from "../catalog/field-rules.ts";
import { type JsonSchema, loadSchema } from "../catalog/schema.ts";
import { hasRows, type RowStreamSpec } from "../catalog/streams.ts";
import type { Row } from "../sync/service.ts";
import { isNotOnPlan, type Session } from "./session.ts";

const SAMPLE = 10_000;
const SAMPLE_BYTES = 67_108_864;

/** Live records of a stream, as many as one request shows, at most this number. */
export async function sample(
  spec: RowStreamSpec,
  declared: JsonSchema,
  session: Session,
  most = SAMPLE,
): Promise<readonly Record<string, unknown>[]> {
  const api = session.streamApi(spec, { cursor: null, schema: declared });
  const rows: Row[] = [];
  let bytes = 0;
  if (spec.exportPath === null) rows.push(...(await api.page({ kind: "all" }, 1)).rows);
  else {
    for await (const batch of api.stream({ kind: "all" })) {
      rows.push(...batch.rows.filter(({ isSuppressed }) => isSuppressed !== true));
      bytes += batch.rows.reduce((sum, { raw }) => sum + raw.length, 0);
      if (rows.length >= most || bytes >= SAMPLE_BYTES) break;
    }
  }
  return rows.slice(0, most).map(({ raw }) => JSON.parse(fromLatin1(raw)));
}

/**
 * Compares the field names of the config that no schema has with live records, before a row can leave with a field that
 * was to be dropped or hashed. Asks for nothing where the schemas have all names. Throws ConfigError.
 */
export const checkFieldNames = (session: Session): Promise<void> =>
  session.privacy.refuseUnknown(() => liveNames(session));

async function liveNames(session: Session): Promise<ReadonlySet<string>> {
  const live = new Set<string>();
  for (const spec of session.streams) {
    if (!hasRows(spec)) continue;
    const rows = await sample(spec, loadSchema(spec.name), session).catch((error: unknown) => {
      if (isNotOnPlan(error) || error instanceof NotFoundError) return [];
      throw error;
    });
    for (const row of rows) fieldNamesOf(row, live);
  }
  return live;
}
