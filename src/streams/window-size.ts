/** A range of at most this number of rows is one window. */
const SMALL_RANGE = 50_000;
const FIRST_SIZE = 25_000;
const SMALLEST_SIZE = 5_000;
const LARGEST_SIZE = 100_000;
/** A window should take so long (ms), and one of fewer rows says too little of the service's speed. */
const WINDOW_MS = 10_000;
const MEASURED_ROWS = 5_000;

/** How many rows a window should have: what the service streams in ten seconds. */
export class WindowSize {
  #rows: number;
  readonly #most: number;

  /** @param maxWindowRows as the operator set it */
  constructor(maxWindowRows: number) {
    this.#most = maxWindowRows;
    this.#rows = Math.min(FIRST_SIZE, maxWindowRows);
  }

  get rows(): number {
    return this.#rows;
  }

  /** A range that is no larger is not worth the requests that a plan takes. */
  get smallRange(): number {
    return Math.min(SMALL_RANGE, this.#most);
  }

  /** Takes in how long (ms) an export took from its request to its end. */
  measure(rows: number, ms: number): void {
    if (rows < MEASURED_ROWS) return;
    const inTime = Math.round((rows * WINDOW_MS) / Math.max(1, ms));
    this.#rows = Math.min(this.#most, LARGEST_SIZE, Math.max(SMALLEST_SIZE, inTime));
  }
}
