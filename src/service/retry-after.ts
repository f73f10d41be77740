const LONGEST_MS = 300_000;
const SHORTEST_MS = 1_000;

/**
 * Ms to wait by a Retry-After header: seconds, or an HTTP date which is held against the service's own clock.
 * At least a second and at most five minutes; `otherwise` for anything that is neither.
 */
export function retryAfterMs(
  header: string | readonly string[] | undefined,
  serviceNow: number,
  otherwise: number,
): number {
  // A layer may add the header to an answer that has it.
  const [value = ""] = [header ?? ""].flat();
  const asked = parseRetryAfter(value.trim(), serviceNow) ?? otherwise;
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, asked));
}

function parseRetryAfter(value: string, serviceNow: number): number | undefined {
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  const at = /[a-z]/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : at - serviceNow;
}
