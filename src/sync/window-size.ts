/** A range of at most this number of rows is one window. */
const SMALL_RANGE = 50_000;
const FIRST_SIZE = 25_000;
const MIN_SIZE = 5_000;
const MAX_SIZE = 100_000;
/** How long (ms) the export of a window should take. */
const WINDOW_MS = 10_000;
/** Fewer rows than these say too little of the service's speed. */
const MEASURED_ROWS = 5_000;
/** Windows are planned to have this share of the most rows, because days differ. */
const PLANNED_SHARE = 0.75;

/** How many rows a window should have: what the service exports in ten seconds. */
export class WindowSize {
  /** A window of several days with more rows is halved. As the operator set it. */
  readonly most: number;
  /** Whether no export proved the last window, so that the next one gets a single export. */
  exportsFail = false;
  /** Whether an export was something else than lines, which is warned about once: none is asked for any more. */
  exportsLackForm = false;
  #rows = FIRST_SIZE;

  constructor(maxWindowRows: number) {
    this.most = maxWindowRows;
  }

  get rows(): number {
    return Math.min(this.#rows, Math.ceil(this.most * PLANNED_SHARE));
  }

  /** A range that is no larger is not worth the requests that a plan takes. */
  get smallRange(): number {
    return Math.min(SMALL_RANGE, this.most);
  }

  /** Learns from how long (ms) an export took from its request to its end. */
  measure(rows: number, ms: number): void {
    if (rows < MEASURED_ROWS) return;
    this.#rows = Math.min(MAX_SIZE, Math.max(MIN_SIZE, Math.round((rows * WINDOW_MS) / ms)));
  }
}
