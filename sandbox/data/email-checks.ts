import { type Clock, DAY_MS, iso } from "./clock.ts";
import type { JobOptions } from "./job-options.ts";
import { hashOf, hex, mix } from "./random.ts";
import { ServiceError } from "./service-error.ts";

/** `cachedFrom`: when an answer that is reused was found. */
type Part = {
  readonly source: string;
  readonly endsAt: number;
  readonly fails: boolean;
  readonly cachedFrom: number | undefined;
};

type Check = {
  readonly id: string;
  readonly email: string;
  readonly startsAt: number;
  readonly endsAt: number;
  readonly parts: readonly Part[];
};

/** How long ago the answers about an address that begins with "known" were found. */
const KNOWN_SINCE_MS = 30 * DAY_MS;

/**
 * Checks of e-mails against every source, in office hours. The first source fails for an address that begins with
 * "fails", and once for one that begins with "fails-once". Answers are reused.
 */
export class EmailChecks {
  readonly #checks = new Map<string, Check>();
  readonly #answered = new Map<string, number>();
  readonly #clock: Clock;
  readonly #sources: readonly string[];
  readonly #timezone: string;
  readonly #took: number;
  #count = 0;

  constructor(clock: Clock, sources: readonly string[], { timezone = "UTC", checkSeconds = 5 }: JobOptions) {
    this.#clock = clock;
    this.#sources = sources;
    this.#timezone = timezone;
    this.#took = checkSeconds * 1000;
  }

  submit(email: string): { readonly jobId: string; readonly pollAfter: string | null } {
    const now = this.#clock.now();
    const startsAt = nextOpening(now, this.#timezone);
    const id = `chk_${++this.#count}_${hex(mix(hashOf(email) + this.#count))}`;
    const parts = this.#parts(email, startsAt);
    const endsAt = Math.max(startsAt, ...parts.map((part) => part.endsAt));
    this.#checks.set(id, { id, email, startsAt, endsAt, parts });
    return { jobId: id, pollAfter: startsAt > now ? iso(startsAt) : null };
  }

  view(id: string): object {
    const check = this.#checks.get(id);
    if (check === undefined) throw new ServiceError(404, "JOB_NOT_FOUND", "There is no such job");
    const now = this.#clock.now();
    const isCompleted = now >= check.endsAt;
    const status = isCompleted ? "completed" : now >= check.startsAt ? "running" : "queued";
    const sources = check.parts.map((part) => [part.source, answerOf(part, check, isCompleted, now)]);
    return { success: true, job_id: id, email: check.email, status, sources: Object.fromEntries(sources) };
  }

  forget(): void {
    this.#checks.clear();
    this.#answered.clear();
  }

  #parts(email: string, startsAt: number): Part[] {
    const failures = [...this.#checks.values()].filter((check) => check.email === email).length;
    return this.#sources.map((source, nth) => {
      const key = `${source} ${email}`;
      const fails =
        nth === 0 && email.startsWith("fails") && !(email.startsWith("fails-once") && failures > 0);
      const known = email.startsWith("known") ? startsAt - KNOWN_SINCE_MS : undefined;
      const cachedFrom = fails ? undefined : (this.#answered.get(key) ?? known);
      const endsAt = cachedFrom === undefined ? startsAt + (nth + 1) * this.#took : startsAt;
      if (!fails) this.#answered.set(key, cachedFrom ?? endsAt);
      return { source, endsAt, fails, cachedFrom };
    });
  }
}

/** All answers are released together, when the job is completed. */
function answerOf(
  { source, endsAt, fails, cachedFrom }: Part,
  { email, startsAt }: Check,
  isCompleted: boolean,
  now: number,
): object {
  const cached = cachedFrom !== undefined;
  const ended = fails ? "failed" : "done";
  const status = now >= endsAt && now >= startsAt ? ended : "running";
  if (!isCompleted || fails) return { status, is_user: null, checked_at: null, cached };
  return {
    status,
    is_user: hashOf(`${email} ${source}`) % 2 === 0,
    checked_at: iso(cachedFrom ?? endsAt),
    cached,
  };
}

const OPENS = 9;
const CLOSES = 18;
const STEP_MS = 900_000;
const WEEKEND: ReadonlySet<string> = new Set(["Sat", "Sun"]);

/**
 * The first moment from `from` on at which checks run: Monday to Friday, 09:00 to 18:00 in the timezone, as its clocks
 * are set that day. Every timezone is a whole number of quarter hours from UTC.
 */
function nextOpening(from: number, timezone: string): number {
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
