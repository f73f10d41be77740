import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Plan } from "../data/account.ts";
import { ServiceError } from "../data/service-error.ts";

const KEY = /^[a-z0-9]+_[0-9a-f]{8}_[0-9a-f]{32}$/;

/** Whether text has the form of an API key: `<prefix>_{8 hex}_{32 hex}`. */
export const isKeyShaped = (text: string): boolean => KEY.test(text);

/** The key that a request carries, in either of the two accepted headers. */
export function presentedKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers["x-api-key"];
  if (typeof key === "string") return key;
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
}

/** Refuses a missing, malformed or unknown key, always with the same words. */
export function authenticate(presented: string | undefined, accepted: string): void {
  if (presented === undefined || !timingSafeEqual(digest(presented), digest(accepted))) {
    throw new ServiceError(401, "INVALID_API_KEY", "The API key is missing or not valid");
  }
}

/** Refuses a workspace without a subscription, and an endpoint that its plan does not include. */
export function checkPlan(plan: Plan, required: Plan | "any"): void {
  if (plan === "inactive") {
    throw new ServiceError(403, "SUBSCRIPTION_INACTIVE", "The workspace has no active subscription");
  }
  if (required !== "any" && required !== plan) {
    throw new ServiceError(
      403,
      "ENDPOINT_NOT_ON_PLAN",
      "The plan of this workspace does not include this endpoint",
    );
  }
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

const WINDOW_MS = 60_000;

/** At most `perMinute` admitted requests in any minute; 0 means no limit. */
export class RateLimit {
  readonly #perMinute: number;
  #admitted: number[] = [];

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Counts a request, or refuses it with the seconds after which one will be admitted. */
  admit(now: number): void {
    if (this.#perMinute === 0) return;
    this.#admitted = this.#admitted.filter((at) => at > now - WINDOW_MS && at <= now);
    const [oldest] = this.#admitted;
    if (oldest !== undefined && this.#admitted.length >= this.#perMinute) {
      const seconds = Math.max(1, Math.ceil((oldest + WINDOW_MS - now) / 1000));
      throw new ServiceError(429, "RATE_LIMIT_EXCEEDED", "The limit of this key is used up for now", {
        "retry-after": String(seconds),
      });
    }
    this.#admitted.push(now);
  }
}
