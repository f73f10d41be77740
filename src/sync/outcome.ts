import type { Day } from "../base/time.ts";
import type { LineBatch } from "./event.ts";
import type { Service } from "./service.ts";
import type { Window } from "./window.ts";
import type { WindowSize } from "./window-size.ts";

/** The same for every window of a run. */
export type RunRules = {
  readonly service: Service;
  /** By the run's first count, and the same for all of the run. */
  readonly yesterday: Day;
  /** False: an export that ends properly proves its window. */
  readonly verifyCounts: boolean;
  /** Whether the stream has an export, or only a list; and whether it has a list. */
  readonly isExported: boolean;
  readonly isListed: boolean;
  /** Epoch ms; rows with a later cursor are not emitted. */
  readonly until: number;
  /** Epoch ms; rows with a later cursor do not move the stream's cursor. */
  readonly latest: number;
  /** `reject`: a row without its key fails the attempt. */
  readonly onMissingKey: "reject" | "pass" | "drop";
  readonly windowSize: WindowSize;
};

/** How a window, or a part of it, ended. The outcomes of a window cover all its days, oldest first. */
export type Outcome = {
  readonly window: Window;
  /**
   * `proven`: complete. `again`: rows left while it was read, so the next run reads it again. `missing`: not proven.
   */
  readonly kind: "proven" | "again" | "missing";
  /** Distinct rows that were shown, suppressed ones too. */
  readonly rows: number;
  readonly suppressed: number;
  /** The shown rows of each closed day. */
  readonly days: ReadonlyMap<Day, number>;
  /** People without a date that were counted, if the window includes them. */
  readonly undated?: number | undefined;
  /** The newest cursor that was shown and may be the stream's, as the service writes it. */
  readonly newest?: string | undefined;
  /** For `missing`: whether an attempt came to its end. A service that ends nothing is down. */
  readonly isRead: boolean;
  readonly cause?: unknown;
  /** For the summary. `counted`: null if nothing was counted. `seconds`: by the service's clock. */
  readonly counted: number | null;
  readonly passes: number;
  readonly seconds: number;
};

export type WindowEvent =
  | { readonly kind: "rows"; readonly batch: LineBatch }
  | { readonly kind: "outcome"; readonly outcome: Outcome };
