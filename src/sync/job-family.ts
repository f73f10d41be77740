import type { Lines } from "./event.ts";
import type { Jobs, Rules } from "./job-moves.ts";

/** One kind of job, and the world that it is done in. */
export type Family = {
  readonly stream: string;
  readonly rules: Rules;
  /** The setting's name, for people. */
  readonly setting: string;
  /** Whether a job that stays in process for a week is lost. */
  readonly canBeLost: boolean;
  /** The items to have, by their digests, in order. Those that are settled may be left out. */
  items(isSettled: (key: string) => boolean): Promise<ReadonlyMap<string, string>>;
  submit(item: string): Promise<Submission>;
  collect(jobId: string): Promise<Collected>;
  /** Resolves when the service's clock is known. */
  ready(): Promise<void>;
  /** Resolves when a request may start. */
  turn(): Promise<void>;
  /** Backs off after so many failures. */
  rest(failures: number): Promise<void>;
  sleep(ms: number): Promise<void>;
  /** Epoch ms by the service's clock. */
  now(): number;
  /** Ms that only grow. */
  monotonic(): number;
};

/** What became of a POST, which is never repeated on its own. */
export type Submission =
  | { readonly kind: "submitted"; readonly jobId: string; readonly notBefore: number | null }
  /** It was answered at once. */
  | { readonly kind: "answered"; readonly answer: Answer }
  /** It may have reached the service. */
  | { readonly kind: "unknown"; readonly error: Error }
  /** The service has not taken it. */
  | { readonly kind: "refused"; readonly error: Error; readonly heals: Healing };

/**
 * Who heals a refusal: the rate limit, time, another item, nobody because it is the answer for the item, or the operator.
 */
export type Healing = "limit" | "time" | "other-item" | "is-answer" | "operator";

export type Collected =
  | { readonly kind: "pending"; readonly processing: boolean; readonly notBefore: number | null }
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "gone" }
  | { readonly kind: "denied" }
  /** The service's answer to this one job makes no sense. */
  | { readonly kind: "odd"; readonly error: Error };

export type Answer = {
  readonly lines: Lines;
  /** The newest moment by which the records are ordered, in UTC to the millisecond; null if they have none. */
  readonly cursor: string | null;
  readonly credits: number;
  /** Whether a part of it failed, so that another try may bring more. */
  readonly again: boolean;
  /** Whether the service says that nothing more can be bought. */
  readonly spent: boolean;
};

/** What a run begins with; `jobs` null: there was no state at all. */
export type Saved = { readonly jobs: Jobs | null; readonly cursor: string | null };
