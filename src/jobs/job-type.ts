import type { JsonObject } from "../base/json.ts";
import type { JobSetting } from "../catalog/streams.ts";
import type { ItemKind } from "../config/items.ts";
import type { RetryWhen } from "../service/error-table.ts";
import type { Caps } from "./caps.ts";
import type { Polling, ResubmitRules } from "./due.ts";

/** One kind of job: its items, its caps and its requests. */
export type JobType = {
  readonly setting: JobSetting;
  /** The setting in the config, and the word for one job in messages. */
  readonly settingName: string;
  readonly noun: string;
  readonly kind: ItemKind;
  /** Where the items are: in a list, in a file, and in the rows of streams. */
  readonly list: readonly string[];
  readonly file: string | null;
  readonly sources: readonly ("people" | "companies")[];
  readonly caps: Caps;
  readonly resubmitRules: ResubmitRules;
  /** Null: the service answers a submission at once, and a poll is not possible. */
  readonly polling: Polling | null;
  /** How long (ms) one sync waits for answers. */
  readonly maxWait: number;
  /** How many jobs may be open at once. */
  readonly maxOpen: number;
  /** The requests of submissions and of polls. */
  readonly submit: Request;
  readonly collect: Request;
  bodyOf(item: string): JsonObject;
  /** Reads the answer to a submission; undefined if it is unusable. @param answered when it arrived (epoch ms) */
  taken(value: unknown, item: string, answered: number): SubmitReply | undefined;
  /** Reads the answer to a poll; undefined if it is unusable. */
  result(status: number, value: unknown): JobReply | undefined;
  /** The credits that a reply names, usable or not. */
  costOf(reply: unknown): number;
  /**
   * The records of an answer for one stream.
   * @param hasEarlier whether an earlier answer was delivered: failed parts of this answer must not replace it
   */
  records(stream: string, answer: Answer, jobId: string | null, hasEarlier: boolean): readonly JsonObject[];
};

/** `what`: the end of "Cannot …". `path` may contain `{job}`, for the job's id. */
type Request = { readonly what: string; readonly path: string };

/** The outcome of a submission. The client never repeats a submission. */
export type SubmitReply =
  | { readonly kind: "taken"; readonly jobId: string; readonly due: number | null }
  /** The service answered at once. */
  | { readonly kind: "answered"; readonly answer: Answer }
  /** The submission may have reached the service. `cost`: the credits that a useless answer names. */
  | { readonly kind: "unknown"; readonly error: Error; readonly cost: number }
  /** The service did not take the submission. */
  | { readonly kind: "refused"; readonly error: Error; readonly why: RetryWhen; readonly code: string };

/** The outcome of a poll. */
export type JobReply =
  | { readonly kind: "pending"; readonly due: number | null }
  | { readonly kind: "answered"; readonly answer: Answer }
  | Problem;

/** A useless reply. `known`: about the job, so the address is right. `denied`: the key may not see the job. `silent`: no answer. */
export type Problem = {
  readonly kind: "known" | "unusable" | "denied" | "silent";
  readonly error: Error;
  readonly code: string;
  /** Whether another poll in this run may help. */
  readonly isRetryable?: boolean;
  /** The credits that the reply names. */
  readonly cost?: number;
};

/** A result, or the response to a verification. */
export type Answer = {
  readonly value: JsonObject;
  /** Whether a part of the job or the whole job failed, and cost nothing. Another submission may give more. */
  readonly failed: boolean;
  /** The code of a failure. */
  readonly code: string | null;
};
