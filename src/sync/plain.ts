import { BodyError } from "../errors.ts";
import { readWindow } from "./attempt.ts";
import type { Event, Lines, StreamState } from "./event.ts";
import { NOT_COUNTED, Pass } from "./evidence.ts";
import { Ledger } from "./ledger.ts";
import type { Ports } from "./ports.ts";
import { BEGINNING, type Window } from "./window.ts";

const EVERYTHING: Window = { kind: "all" };
const TRIES = 5;

/** A stream that is read whole each time. */
export type Plain = { readonly stream: string; readonly ports: Ports; readonly state: StreamState };

/**
 * Reads a stream whose rows have no date to filter by from its export, in one window.
 * @param listed whether there is a list, and so a count and pages
 */
export async function* readExported(plain: Plain, verify: boolean, listed: boolean): AsyncGenerator<Event> {
  const { ports } = plain;
  const run = { ports, yesterday: BEGINNING, verify, listed, until: Number.POSITIVE_INFINITY, shortWalks: 0 };
  const count = verify ? undefined : { ...NOT_COUNTED, answered: ports.now() };
  yield* whole(plain, readWindow({ window: EVERYTHING, count }, run));
}

/** Reads a stream from the pages of its list. */
export async function* readListed(plain: Plain): AsyncGenerator<Event> {
  yield* whole(plain, readPages(plain));
}

async function* whole({ stream, ports, state }: Plain, batches: AsyncIterable<Lines>): AsyncGenerator<Event> {
  for await (const lines of batches) {
    if (lines.length > 0) yield { kind: "records", stream, lines, at: ports.now() };
  }
  yield { kind: "checkpoint", stream, state };
  yield { kind: "close", stream, complete: true };
}

/** Until the pages have shown as many rows as the list says it has, or, if it does not say, until they end. */
async function* readPages({ stream, ports }: Plain): AsyncGenerator<Lines> {
  const ledger = new Ledger();
  let cause: unknown;
  for (let failures = 0; failures < TRIES; failures++) {
    if (failures > 0) await ports.rest(failures);
    const pass = new Pass(EVERYTHING, NOT_COUNTED, ledger);
    try {
      const total = yield* pageThrough(ports, pass);
      if (pass.distinct >= total) return;
      cause = new BodyError(`The pages of "${stream}" show ${pass.distinct} rows of ${total}`);
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      cause = error;
    }
  }
  throw new BodyError(`Cannot read "${stream}" whole: its pages do not show all its rows. Run again later`, {
    cause,
  });
}

/** Returns how many rows the list says it has; 0 if it does not say. */
async function* pageThrough(ports: Ports, pass: Pass): AsyncGenerator<Lines, number> {
  for (let number = 1, shown = 0; ; number++) {
    const { rows, total } = await ports.page(EVERYTHING, number);
    const before = pass.distinct;
    yield pass.admit(rows);
    shown += rows.length;
    // A page without a new row is the end of a list that does not count, or of one that knows no pages.
    if (pass.distinct === before || (total !== null && shown >= total)) return total ?? 0;
  }
}
