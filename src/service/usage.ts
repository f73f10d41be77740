/** The work of a run's clients so far. Grows only. */
export type Usage = {
  /** Requests that were started, retries included. */
  requests: number;
  retries: number;
  /** Bytes of bodies as they arrived, before decompression. */
  bytesReceived: number;
  /** Ms that requests have waited for the rate limit and before retries, added up over requests. */
  waitedMs: number;
  /** Ms from the starts of requests to the headers of their answers, added up over requests. */
  requestMs: number;
};

export const noUsage = (): Usage => ({
  requests: 0,
  retries: 0,
  bytesReceived: 0,
  waitedMs: 0,
  requestMs: 0,
});
