/** The work of a run's clients so far. The numbers never decrease. */
export type Usage = {
  /** Started requests, also retries. */
  requests: number;
  retries: number;
  /** Bytes of bodies before decompression. */
  bytesReceived: number;
  /** The sum of the waits of all requests for the rate limit and before retries. */
  waitedMs: number;
  /** The sum of the times from the start of each request to the headers of its answer. */
  requestMs: number;
};

const NONE: Usage = { requests: 0, retries: 0, bytesReceived: 0, waitedMs: 0, requestMs: 0 };

export const noUsage = (): Usage => ({ ...NONE });
