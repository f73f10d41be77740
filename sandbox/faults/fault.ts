import type { Account } from "../data/account.ts";
import type { Answer, Delivery, Ending, Scope } from "./answer.ts";
import type { Distortion } from "./distortion.ts";

/** The subject of a request. `job`: a submission; `poll`: a question for its result. */
export type RequestKind = "list" | "stream" | "job" | "poll";

/** A fault that someone asked for, parsed. */
export type Fault = {
  readonly name: string;
  readonly spec: FaultSpec;
  /** The value after the first equals sign; its default if the fault has one. */
  readonly text: string;
  /** The same as a number; NaN if it is none. */
  readonly value: number;
  /** Options that only this fault knows. */
  readonly options: ReadonlyMap<string, string>;
  readonly path: string | undefined;
  readonly times: number;
  readonly skip: number;
  /** Rows before it strikes; undefined means about half. */
  readonly after: number | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** Whether it strikes exports and pages, and nothing else, whatever its kind usually strikes. */
  readonly ofRows: boolean;
  /** How many requests it has struck before this one. */
  readonly nth: number;
};

/** How a body is cut short, or slowed down, on its way. */
export type Cut = {
  readonly ending: Ending;
  readonly framing?: Delivery["framing"];
  /** Whether the body must be compressed or must not be; absent: as the client asked. */
  readonly gzip?: boolean;
  /** How many bytes at the end of the compressed body are missing. */
  readonly holdBack?: number;
  /** The argument is the number of bytes after which the body ends; a shorter one is complete. */
  readonly byBytes?: boolean;
  /** Every row is sent. */
  readonly whole?: boolean;
  /** The row after the last whole one is sent in part. */
  readonly torn?: boolean;
  readonly drips?: boolean;
  /** The text in the place of the rows, without an end. */
  readonly endless?: (firstLine: string, fault: Fault) => string;
};

/** `silence`: no answer ever comes. `hints`: informational responses come for ever, and no answer. */
export type Unanswered = "silence" | "hints";

/** The request, for faults that answer themselves. */
export type Visit = { readonly account: Account; readonly key: string; readonly path: string };

/** The effect of a fault. */
export type FaultKind =
  | {
      readonly kind: "answer";
      readonly answer: (fault: Fault, visit: Visit) => Answer | Unanswered;
    }
  /** Answers in the place of an export of more rows than the fault's value. */
  | { readonly kind: "limit"; readonly answer: (fault: Fault) => Answer | Unanswered }
  | { readonly kind: "cut"; readonly cut: Cut }
  | {
      readonly kind: "lines";
      readonly rewrite: (lines: Iterable<string>, after: number, fault: Fault) => Iterable<string>;
      readonly closes?: boolean;
    }
  | {
      readonly kind: "event";
      /** Before the request is answered; or once, or each time that `every` rows have been sent. Default once. */
      readonly when?: "before" | "once" | "repeatedly";
      /** `nth`: how often it has happened in this answer. Before an answer, the scope is all people. */
      readonly happen: (fault: Fault, account: Account, scope: Scope, nth: number) => void;
    }
  | {
      readonly kind: "submission";
      /** False: the connection is reset before the service knows of the submission. */
      readonly taken: boolean;
      readonly answer: Answer | "drop";
    }
  | { readonly kind: "distortion"; readonly alter: (distortion: Distortion, fault: Fault) => Distortion };

/** A row of the table of faults. */
export type FaultSpec = FaultKind & {
  readonly description: string;
  /** The text after the equals sign. Without a fallback it must be given. */
  readonly argument?: {
    readonly label: string;
    readonly type: "number" | "text";
    readonly fallback?: string;
    readonly choices?: readonly string[];
  };
  readonly options?: readonly string[];
  /** The requests that it can strike; default: those that fit its kind. */
  readonly on?: readonly RequestKind[];
  /** Only the counts (limit=1) of lists, or only their pages. */
  readonly only?: "counts" | "pages";
  /** Whether another fault may decide how the same body ends. */
  readonly combines?: boolean;
  /** The path that it strikes when an expression names none. */
  readonly path?: string;
  /** Whether it strikes every request when an expression does not say how many; else it strikes one. */
  readonly lasts?: boolean;
};

/** Faults by name. */
export type FaultTable = Readonly<Record<string, FaultSpec>>;
