import type { StreamApi } from "../../src/streams/stream-api.ts";

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
