import type { ConnectorError } from "../base/errors.ts";
import type { Day } from "../base/time.ts";
import type { WindowRecord } from "./event.ts";
import type { WindowSize } from "./plan.ts";
import type { Service } from "./service.ts";
import type { Filters } from "./state.ts";
import type { Window } from "./window.ts";

/** The ways in which the service offers the rows of a stream. */
export type Source = {
  /** Whether rows have dates, so that they can be read in windows of days. */
  readonly isDated: boolean;
  readonly isExported: boolean;
  readonly isListed: boolean;
  /** `reject`: a row without its key fails the attempt. */
  readonly onMissingKey: "reject" | "pass" | "drop";
};

/** The rules for every window of a run. */
export type RunRules = Source & {
  readonly service: Service;
  /** The day before the run's first count. It does not change during the run. */
  readonly yesterday: Day;
  /** False: an export that ends properly proves its window. */
  readonly verifyCounts: boolean;
  /** Rows with a later cursor (epoch ms) are not emitted. */
  readonly until: number;
  /** Rows with a later cursor (epoch ms) do not move the stream's cursor. */
  readonly latest: number;
  readonly windowSize: WindowSize;
};

/** The result for a window, or for a part of the window. The outcomes of a window cover all its days, oldest first. */
export type Outcome = {
  readonly window: Window;
  readonly record: Omit<WindowRecord, keyof Filters>;
  /** The shown rows of each closed day. */
  readonly days: ReadonlyMap<Day, number>;
  /** The number of people without a date, if the window includes them. */
  readonly undated?: number | undefined;
  /** The newest shown cursor that may become the stream's cursor, as the service writes it. */
  readonly newest?: string | undefined;
  /** For `missing`: whether an attempt reached its end. The service seems to be down if no attempt does. */
  readonly isRead: boolean;
  /** The number of exports among the attempts. */
  readonly exports: number;
  /** For `missing`: the failure of the last attempt; undefined: the attempt reached its end, and the numbers differ. */
  readonly cause?: ConnectorError;
};
