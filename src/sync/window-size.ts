/** A range of at most this number of rows is one window. */
const SMALL_RANGE = 50_000;
const FIRST_SIZE = 25_000;
const SMALLEST_SIZE = 5_000;
const LARGEST_SIZE = 100_000;
/** A window should take so long (ms), and one of fewer rows says too little of the service's speed. */
const WINDOW_MS = 10_000;
const MEASURED_ROWS = 5_000;
/** Windows are planned to have this share of the most rows, because days differ. */
const PLANNED_SHARE = 0.75;

/** How many rows a window should have: what the service streams in ten seconds. */
export class WindowSize {
  /** As the operator set it. */
  readonly maxWindowRows: number;
  #rows = FIRST_SIZE;
  /** What exports that failed leave as the most rows, and the most that an export has brought in this run. */
  #limit = Number.POSITIVE_INFINITY;
  #brought = 0;
  /** The service could not even export a single day, and has exported nothing since. */
  exportsFail = false;
  /** A day fell short alike however often it was read, and no window that fell short was proven since. */
  fallsShort = false;

  constructor(maxWindowRows: number) {
    this.maxWindowRows = maxWindowRows;
  }

  get rows(): number {
    return Math.min(this.#rows, Math.ceil(this.most * PLANNED_SHARE));
  }

  /** A window of several days with more rows is split. */
  get most(): number {
    return Math.min(this.maxWindowRows, this.#limit);
  }

  /** A range that is no larger is not worth the requests that a plan takes. */
  get smallRange(): number {
    return Math.min(SMALL_RANGE, this.most);
  }

  /** Takes in how long (ms) an export took from its request to its end. */
  measure(rows: number, ms: number): void {
    this.exportsFail = false;
    this.#brought = Math.max(this.#brought, rows);
    this.#limit = Math.max(this.#limit, this.#brought);
    if (rows < MEASURED_ROWS) return;
    const inTime = Math.round((rows * WINDOW_MS) / ms);
    this.#rows = Math.min(LARGEST_SIZE, Math.max(SMALLEST_SIZE, inTime));
  }

  /** Takes in that exports of several days failed. If others brought as many rows, the number is not to blame. */
  tooLarge(rows: number): void {
    this.#limit = Math.max(this.#brought, Math.min(this.#limit, Math.ceil(rows / 2)));
  }

  /** Takes in that exports of a single day failed. If they had hardly more rows than is allowed, the number was never to blame. */
  dayFailed(rows: number): void {
    if (rows <= 2 * this.#limit) this.#limit = Number.POSITIVE_INFINITY;
  }
}
