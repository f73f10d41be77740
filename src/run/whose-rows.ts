import { ConfigError, ConnectorError, UnreachableError } from "../base/errors.ts";
import { fingerprint } from "../base/text.ts";
import { BEGINNING, dayOf, instant, later } from "../base/time.ts";
import type { Batch, Service } from "../sync/service.ts";
import type { DatedState } from "../sync/state.ts";
import type { DatedWindow } from "../sync/window.ts";

/** Beyond so many pages the export is the shorter way. */
const MOST_PAGES = 100;

/**
 * The state for this API key. Asks only under another key than the state's: it may be the same organization's new one, or
 * another organization's. Throws ConfigError unless the service still shows one of the newest rows that the state remembers.
 * @param api reads the stream without the filters of the config: who left them is there
 */
export async function ofSameRows(
  state: DatedState,
  stream: string,
  key: string,
  api: Service,
): Promise<DatedState> {
  const { witness } = state;
  if (witness === null || witness.key === key) return state;
  const from = later(BEGINNING, dayOf(instant(witness.cursor)));
  const window = { kind: "open", from, undated: false } as const;
  if (await isShown(new Set(witness.keys), window, api)) return { ...state, witness: { ...witness, key } };
  throw new ConfigError(
    `Cannot use the state of "${stream}": the API key is another one, and the service shows none of the newest rows under it. ` +
      "If the key is of another organization, reset the stream or use a state of its own; if it is the same organization, " +
      'remove "witness" from the state',
  );
}

/** Looks through the list, which is newest first, and through the export where the list is too long or fails. */
async function isShown(keys: ReadonlySet<string>, window: DatedWindow, api: Service): Promise<boolean> {
  const holds = ({ rows }: Batch): boolean => rows.some(({ key }) => keys.has(fingerprint(key)));
  try {
    for (let number = 1; number <= MOST_PAGES; number++) {
      const page = await api.page(window, number);
      if (page.rows.length === 0) break;
      if (holds(page)) return true;
    }
  } catch (error) {
    if (!(error instanceof ConnectorError) || error instanceof UnreachableError) throw error;
  }
  for await (const batch of api.stream(window)) if (holds(batch)) return true;
  return false;
}
