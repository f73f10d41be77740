import type { Account } from "./account.ts";
import type { Answer, Scope } from "./answer.ts";
import type { Ending } from "./delivery.ts";
import type { Exchange } from "./exchange.ts";
import type { View } from "./view.ts";

/** A fault as someone asked for it, after its expression was read. */
export type Fault = {
  readonly name: string;
  readonly kind: FaultKind;
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
};

/** How a body is cut short, or slowed down, on its way. */
export type Cut = {
  readonly ending: Ending;
  readonly framing?: "chunked" | "length" | "close";
  /** Whether the body must be compressed or must not be; absent: as the client asked. */
  readonly gzip?: boolean;
  /** How many bytes at the end of the compressed body are missing. */
  readonly holdBack?: number;
  /** Every row is sent. */
  readonly whole?: boolean;
  /** The row after the last whole one is sent in part. */
  readonly torn?: boolean;
  readonly drips?: boolean;
};

/** What a fault does. A fault that answers with undefined never answers. */
export type FaultKind =
  | {
      readonly kind: "answer";
      readonly answer: (fault: Fault, exchange: Exchange) => Answer | undefined;
      readonly countsOnly?: boolean;
    }
  | { readonly kind: "cut"; readonly cut: Cut }
  | {
      readonly kind: "lines";
      readonly rewrite: (lines: Iterable<string>, after: number, fault: Fault) => Iterable<string>;
      readonly closes?: boolean;
    }
  | { readonly kind: "event"; readonly happen: (fault: Fault, account: Account, scope: Scope) => void }
  | { readonly kind: "submission"; readonly taken: boolean; readonly answers: boolean }
  | { readonly kind: "view"; readonly alter: (view: View, fault: Fault) => View };

/** A row of the table of faults. */
export type FaultSpec = FaultKind & {
  readonly description: string;
  /** What stands after the equals sign. Without a fallback it must be given. */
  readonly argument?: {
    readonly label: string;
    readonly type: "number" | "text";
    readonly fallback?: string;
  };
  readonly options?: readonly string[];
};
