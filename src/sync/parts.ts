import { ConnectorError, UnreachableError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import type { Service } from "./service.ts";
import { type ClosedWindow, describe, type Window } from "./window.ts";
import type { RunRules } from "./window-result.ts";

type PartRules = Pick<RunRules, "api" | "windowSize">;

/**
 * The parts of a single closed day of more than `max_window_rows`, by the filters besides days: by `is_user`, and what is
 * still too large by source. Only the day itself where no filter divides it. Their counts say no more than that reading by
 * parts is worth its requests: that they hold the whole day, the day's own count proves.
 * @throws UnreachableError
 */
export async function partsOf(day: Window, rows: number, rules: PartRules): Promise<readonly Window[]> {
  if (day.kind !== "closed") return [day];
  const parts = await divide(day, rows, rules);
  if (parts.length > 1) {
    const text = `${describe(day)} holds ${plural(rows, "row")}, and its export broke: it is read in ${parts.length} parts, by is_user and source`;
    rules.api.notify({ kind: "log", level: "info", text });
  }
  return parts;
}

async function divide(
  window: ClosedWindow,
  rows: number,
  rules: PartRules,
): Promise<readonly ClosedWindow[]> {
  const { api, windowSize } = rules;
  if (rows <= windowSize.maxWindowRows) return [window];
  for (const cut of [byUse, bySource]) {
    const parts: (readonly [ClosedWindow, number])[] = [];
    let sum = 0;
    for (const part of await cut(window, rows, rules)) {
      const many = sum > rows ? 0 : await rowsIn(part, api);
      sum += many;
      parts.push([part, many]);
    }
    // Rows only leave a closed day, so the parts of it hold no more than it held and no fewer than it holds.
    if (parts.length === 0 || sum > rows || sum < (await rowsIn(window, api))) continue;
    const divided: ClosedWindow[] = [];
    for (const [part, many] of parts) if (many > 0) divided.push(...(await divide(part, many, rules)));
    return divided;
  }
  return [window];
}

type Division = (window: ClosedWindow, rows: number, rules: PartRules) => Promise<readonly ClosedWindow[]>;

const byUse: Division = async (window) =>
  window.isUser === undefined ? [true, false].map((isUser) => ({ ...window, isUser })) : [];

/** Sources so many that a part is hardly worth its request are no cut. */
const bySource: Division = async (window, rows, { api, windowSize }) => {
  const sources = window.source === undefined ? ((await api.sources()) ?? []) : [];
  return sources.length * windowSize.rows > rows ? [] : sources.map((source) => ({ ...window, source }));
};

/** Infinitely many where the service refuses to count under a filter: then it divides nothing. */
async function rowsIn(window: ClosedWindow, api: Service): Promise<number> {
  try {
    return (await api.count(window)).rows;
  } catch (error) {
    if (!(error instanceof ConnectorError) || error instanceof UnreachableError) throw error;
    return Number.POSITIVE_INFINITY;
  }
}
