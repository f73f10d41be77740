import type { RetryWhen } from "../api/error-table.ts";
import type { JobSetting } from "../catalog/streams.ts";
import type { JsonObject } from "../json.ts";
import type { Caps } from "./caps.ts";
import type { ItemKind } from "./items.ts";
import type { Polling } from "./schedule.ts";
import type { ResubmitRules } from "./wanted.ts";

/** One kind of job: what it is about, what it may cost, and how the service is asked. */
export type JobType = {
  readonly setting: JobSetting;
  /** The setting's name in the config, for people. */
  readonly settingName: string;
  readonly kind: ItemKind;
  readonly caps: Caps;
  readonly resubmitRules: ResubmitRules;
  /** Null: a submission is answered at once. */
  readonly polling: Polling | null;
  /** How long (ms) one sync waits for answers. */
  readonly maxWait: number;
  /** How many submissions may be under way at once, once one was answered. */
  readonly postsAtOnce: number;
  submit(item: string): Promise<Submission>;
  ask(jobId: string): Promise<JobReply>;
  /** The records of an answer for one of the setting's streams. */
  records(stream: string, about: AboutAnswer, answer: Answer): readonly JsonObject[];
};

/** What became of a submission, which is never repeated on its own. */
export type Submission =
  | { readonly kind: "taken"; readonly jobId: string; readonly notBefore: number | null }
  /** It was answered at once. */
  | { readonly kind: "answered"; readonly answer: Answer }
  /** It may have reached the service. */
  | { readonly kind: "unknown"; readonly error: Error }
  /** The service did not take it. */
  | { readonly kind: "refused"; readonly error: Error; readonly why: Refusal; readonly code: string };

/** What helps after a refusal. */
export type Refusal = RetryWhen | "credits";

/** What asking for a result brought. */
export type JobReply =
  | { readonly kind: "pending"; readonly notBefore: number | null }
  | { readonly kind: "answered"; readonly answer: Answer }
  /** Nothing of use about this one job. `isKnownJob`: the service speaks of the job, so the address is right. */
  | {
      readonly kind: "unusable";
      readonly error: Error;
      readonly code: string;
      /** Whether asking again in this run may help. */
      readonly isRetryable: boolean;
      readonly isKnownJob: boolean;
    }
  | { readonly kind: "denied"; readonly error: Error; readonly code: string }
  /** No answer arrived at all. */
  | { readonly kind: "silent"; readonly error: Error };

/** What an answer is about. */
export type AboutAnswer = {
  readonly jobId: string | null;
  /** Whether an earlier answer was delivered, so that a failed part of this one must not replace a real one. */
  readonly isRefresh: boolean;
  /** E-mail checks: the sources whose answer was delivered already. */
  readonly sources: readonly string[];
};

/** A result, or the response to a verification. */
export type Answer = {
  readonly value: JsonObject;
  /** The newest moment by which the records are ordered, in UTC to the millisecond; null if they have none. */
  readonly cursor: string | null;
  /** Credits that the answer cost. */
  readonly cost: number;
  /** Whether the job failed, in whole or in part, and cost nothing: another submission may bring more. */
  readonly failed: boolean;
  /** The code of a failure. */
  readonly code: string | null;
  /** E-mail checks: the sources that were answered. */
  readonly sources: readonly string[];
};
