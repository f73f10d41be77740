import type { ConnectorError } from "../base/errors.ts";
import type { Day } from "../base/time.ts";
import type { WindowRecord } from "./event.ts";
import type { Service } from "./service.ts";
import type { Filters } from "./state.ts";
import type { Window } from "./window.ts";
import type { WindowSize } from "./window-size.ts";

/** How the rows of a stream are read: in windows of days or all at once, by an export, by a list. */
export type Source = {
  readonly isDated: boolean;
  /** Whether the stream has an export, or only a list; and whether it has a list. */
  readonly isExported: boolean;
  readonly isListed: boolean;
  /** `reject`: a row without its key fails the attempt. */
  readonly onMissingKey: "reject" | "pass" | "drop";
};

/** The same for every window of a run. */
export type RunRules = Source & {
  readonly service: Service;
  /** By the run's first count, and the same for all of the run. */
  readonly yesterday: Day;
  /** False: an export that ends properly proves its window. */
  readonly verifyCounts: boolean;
  /** Epoch ms; rows with a later cursor are not emitted. */
  readonly until: number;
  /** Epoch ms; rows with a later cursor do not move the stream's cursor. */
  readonly latest: number;
  readonly windowSize: WindowSize;
};

/** How a window, or a part of it, ended. The outcomes of a window cover all its days, oldest first. */
export type Outcome = {
  readonly window: Window;
  readonly record: Omit<WindowRecord, keyof Filters>;
  /** The shown rows of each closed day. */
  readonly days: ReadonlyMap<Day, number>;
  /** People without a date that were counted, if the window includes them. */
  readonly undated?: number | undefined;
  /** The newest cursor that was shown and may be the stream's, as the service writes it. */
  readonly newest?: string | undefined;
  /** For `missing`: whether an attempt came to its end. A service that ends nothing is down. */
  readonly isRead: boolean;
  /** The number of exports among the attempts. */
  readonly exports: number;
  /** For `missing`: why the last attempt failed; undefined: it came to its end, and the numbers differ. */
  readonly cause?: ConnectorError;
};
