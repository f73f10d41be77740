const LONGEST_MS = 300_000;
const SHORTEST_MS = 1_000;

/**
 * Ms to wait by a Retry-After header: seconds, or an HTTP date which is compared with the service's own clock.
 * At least a second and at most five minutes; undefined for anything that is neither.
 */
export function retryAfterMs(header: string | undefined, serviceNow: number): number | undefined {
  const value = header ?? "";
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) * 1_000 : Number.NaN;
  const asked = /[a-z]/i.test(value) ? Date.parse(value) - serviceNow : seconds;
  return Number.isNaN(asked) ? undefined : Math.min(LONGEST_MS, Math.max(SHORTEST_MS, asked));
}
