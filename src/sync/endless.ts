import { SilenceError, UnmadeError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { IS_NEW, inPass, SeenRows } from "./seen-rows.ts";
import type { Batch, Count } from "./service.ts";
import { describe, type Window } from "./window.ts";
import type { RunRules } from "./window-result.ts";

/** An export is given up once it has shown this number of rows and more than twice what was counted. */
const ENDLESS_ROWS = 10_000;

type Bounds = Pick<RunRules, "api" | "idleMs">;

/**
 * The batches of an export, as long as they show new keys. The caller lets the pass accept a batch before it asks for the
 * next. A body that repeats its rows could otherwise go on for ever, one row a second.
 * @param pass `hasTooMany`: it ends well before the end of a body that shows far more than was counted
 * @param isShown whether the pass has shown what was counted: then a body without an end ends there, without an error. Given
 *   by who makes exports again that fail
 * @throws SilenceError once the caller has waited for `idleMs` without a batch that has a key which is new to the pass, or
 *   far more rows came than were counted
 */
export async function* readWhileNew(
  window: Window,
  count: Count,
  pass: { readonly distinct: number; readonly hasTooMany: boolean },
  { api, idleMs }: Bounds,
  isShown?: () => boolean,
): AsyncGenerator<Batch> {
  const counted = count.known ? count.rows + count.undated : Number.POSITIVE_INFINITY;
  let rows = 0;
  let { distinct } = pass;
  let waited = 0;
  let asked = api.monotonic();
  try {
    for await (const batch of api.stream(window, isShown !== undefined)) {
      waited += api.monotonic() - asked;
      yield batch;
      rows += batch.rows.length;
      if (rows > ENDLESS_ROWS && rows > 2 * counted) {
        if (pass.hasTooMany) return;
        throw new SilenceError(
          `${cannotEnd(window)}: ${plural(rows, "row")} came, and the service counts ${plural(counted, "row")}`,
        );
      }
      if (pass.distinct > distinct) waited = 0;
      else if (waited > idleMs) {
        const silence = `no new row came for ${idleMs / 1000} s, although rows go on to come`;
        throw new SilenceError(`${cannotEnd(window)}: ${silence}`);
      }
      distinct = pass.distinct;
      asked = api.monotonic();
    }
  } catch (error) {
    if (!(error instanceof SilenceError)) throw error;
    if (isShown?.() === true) return;
    throw pass.distinct > 0 ? error : new UnmadeError(error.message, { cause: error.cause });
  }
}

/**
 * The batches of an export whose reader proves nothing by them but how many rows there are: none comes twice.
 * @param isShown as for `readWhileNew`
 * @throws SilenceError for an export that shows nothing new for `idleMs`, or far more than was counted
 */
export async function* readBounded(
  window: Window,
  count: Count,
  bounds: Bounds,
  isShown?: () => boolean,
): AsyncGenerator<Batch> {
  const seen = new SeenRows(count.rows);
  const pass = { distinct: 0, hasTooMany: false };
  for await (const batch of readWhileNew(window, count, pass, bounds, isShown)) {
    const keys = seen.digestsOf(batch.rows.map(({ key, raw }) => (key === "" ? raw : key)));
    const rows = batch.rows.filter(({ raw }, nth) => {
      const known = seen.add(keys, nth, raw, 1);
      if (inPass(known) === 0) pass.distinct += 1;
      return (known & IS_NEW) !== 0;
    });
    yield { ...batch, rows };
  }
}

const cannotEnd = (window: Window): string => `Cannot read ${describe(window)} to its end`;
