import { NewestKeys } from "../../src/streams/newest-keys.ts";
import type { StreamApi } from "../../src/streams/stream-api.ts";
import type { RunRules } from "../../src/streams/window-result.ts";
import { WindowSize } from "../../src/streams/window-size.ts";
import type { Day } from "../../src/time.ts";

/** A service that no part of it may be asked of, save what a test gives. */
export function apiWith(given: Partial<StreamApi>): StreamApi {
  const absent = (): never => {
    throw new Error("Not asked for");
  };
  return {
    ...{
      count: absent,
      stream: absent,
      hasRows: absent,
      rowAt: absent,
      page: absent,
      sources: absent,
      backOff: absent,
    },
    ...{ now: () => 0, monotonic: () => 0, notify: () => {} },
    ...given,
  };
}

/** The rules of a run whose yesterday is 2026-03-19. */
export function rulesWith(given: Partial<RunRules> = {}): RunRules {
  return {
    api: apiWith({}),
    yesterday: "2026-03-19" as Day,
    verifyCounts: true,
    isExported: true,
    isListed: true,
    until: Number.POSITIVE_INFINITY,
    latest: Number.POSITIVE_INFINITY,
    undatedSeen: new Set(),
    newestKeys: new NewestKeys(),
    idleMs: 60_000,
    ignoredDays: new Set(),
    onMissingKey: "reject",
    windowSize: new WindowSize(250_000),
    ...given,
  };
}
