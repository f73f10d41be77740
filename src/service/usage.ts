/** The work of a client so far. Grows only. */
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

/** The sum over several clients. */
export function sumOfUsages(usages: readonly Usage[]): Usage {
  const sum = noUsage();
  for (const name of Object.keys(sum) as (keyof Usage)[])
    for (const usage of usages) sum[name] += usage[name];
  return sum;
}
