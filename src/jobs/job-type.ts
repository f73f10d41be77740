import type { JsonObject } from "../base/json.ts";
import type { JobSetting } from "../catalog/streams.ts";
import type { ItemKind } from "../config/items.ts";
import type { RetryWhen } from "../service/error-table.ts";
import type { Caps } from "./caps.ts";
import type { Polling, ResubmitRules } from "./due.ts";

/** One kind of job under a config: what it is about, what it may cost, and how the service is asked. */
export type JobType = {
  readonly setting: JobSetting;
  /** The setting's name in the config, and one job, for people. */
  readonly settingName: string;
  readonly noun: string;
  readonly kind: ItemKind;
  /** The items: in a list, in a file, and in the rows of streams. */
  readonly list: readonly string[];
  readonly file: string | null;
  readonly froms: readonly ("people" | "companies")[];
  readonly caps: Caps;
  readonly resubmitRules: ResubmitRules;
  /** Null: a submission is answered at once, and its answer cannot be asked for again. */
  readonly polling: Polling | null;
  /** How long (ms) one sync waits for answers. */
  readonly maxWait: number;
  /** How many jobs may be open at once. */
  readonly maxOpen: number;
  /** The end of "Cannot …", and the path, of a submission and of a question for a result. */
  readonly submit: Request;
  readonly collect: Request;
  bodyOf(item: string): JsonObject;
  /**
   * Reads an answer by which the service has taken an item; undefined if it says nothing of use.
   * @param answered when it came, epoch ms
   */
  taken(value: unknown, item: string, answered: number): SubmitReply | undefined;
  /** Reads an answer about a job; undefined for anything else. */
  result(status: number, value: unknown): JobReply | undefined;
  /** The credits that a reply says it cost, whether it is of other use or not. */
  costOf(reply: unknown): number;
  /**
   * The records of an answer for one of the setting's streams.
   * @param hasEarlier whether an earlier answer was delivered: a failed part of this one must not replace it
   */
  records(stream: string, answer: Answer, jobId: string | null, hasEarlier: boolean): readonly JsonObject[];
};

/** `path` may contain `{job}`, for the job's id. */
type Request = { readonly what: string; readonly path: string };

/** The end of a submission, which is never repeated on its own. */
export type SubmitReply =
  | { readonly kind: "taken"; readonly jobId: string; readonly due: number | null }
  /** It was answered at once. */
  | { readonly kind: "answered"; readonly answer: Answer }
  /** It may have reached the service. `cost`: the credits that a useless answer names. */
  | { readonly kind: "unknown"; readonly error: Error; readonly cost: number }
  /** The service did not take it. */
  | { readonly kind: "refused"; readonly error: Error; readonly why: RetryWhen; readonly code: string };

/** The reply to a question for a result. */
export type JobReply =
  | { readonly kind: "pending"; readonly due: number | null }
  | { readonly kind: "answered"; readonly answer: Answer }
  | Problem;

/**
 * A reply without use. `known`: the service speaks of the job, so the address is right. `denied`: the key may not see
 * the job. `silent`: no answer arrived at all.
 */
export type Problem = {
  readonly kind: "known" | "unusable" | "denied" | "silent";
  readonly error: Error;
  readonly code: string;
  /** Whether asking again in this run may help. */
  readonly isRetryable?: boolean;
  /** The credits that the reply says it cost. */
  readonly cost?: number;
};

/** A result, or the response to a verification. */
export type Answer = {
  readonly value: JsonObject;
  /** Whether the job failed, in whole or in part, and cost nothing: another submission may give more. */
  readonly failed: boolean;
  /** The code of a failure. */
  readonly code: string | null;
};
