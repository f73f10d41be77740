const OPENS = 9;
const CLOSES = 18;
const STEP_MS = 900_000;
const WEEKEND: ReadonlySet<string> = new Set(["Sat", "Sun"]);

/**
 * The first moment from `from` on at which checks run: Monday to Friday, 09:00 to 18:00 in the timezone, as its clocks
 * are set that day. Every timezone is a whole number of quarter hours from UTC.
 */
export function nextOpening(from: number, timezone: string): number {
  const isOpen = openIn(timezone);
  if (isOpen(from)) return from;
  let at = Math.ceil(from / STEP_MS) * STEP_MS;
  while (!isOpen(at)) at += STEP_MS;
  return at;
}

function openIn(timezone: string): (ms: number) => boolean {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: timezone,
    weekday: "short",
    hour: "numeric",
    hourCycle: "h23",
  });
  return (ms) => {
    const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
    const hour = Number(parts.get("hour"));
    return !WEEKEND.has(parts.get("weekday") ?? "") && hour >= OPENS && hour < CLOSES;
  };
}
