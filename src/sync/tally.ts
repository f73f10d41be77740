import type { WindowFacts } from "./event.ts";
import type { Count, Service } from "./service.ts";
import type { Window } from "./window.ts";

/** What a pass has shown so far. */
type Shown = { readonly shown: number; readonly undated: number };

const none = () => ({ emitted: 0, suppressed: 0, passes: 0, requests: 0 });

/** Adds up what the windows took that are read one after the other. */
export class Tally {
  /** The service, of which each request counts. */
  readonly api: Service;
  readonly #onPass: () => void;
  #sum = none();
  #began: number;
  #pass: Shown | undefined;
  #before: Count | undefined;
  #after: Count | undefined;

  /** @param onPass told of each pass */
  constructor(api: Service, onPass: () => void = () => {}) {
    this.#onPass = onPass;
    this.#began = api.monotonic();
    const asked = <Asked>(ask: Asked): Asked => {
      this.#sum.requests += 1;
      return ask;
    };
    this.api = {
      count: async (window) => {
        const isTwo = window.kind === "undated" || (window.kind === "open" && window.undated);
        this.#sum.requests += isTwo ? 2 : 1;
        this.#after = await api.count(window);
        return this.#after;
      },
      stream: (window, once) => asked(api.stream(window, once)),
      hasRows: (window) => asked(api.hasRows(window)),
      rowAt: (window, place) => asked(api.rowAt(window, place)),
      page: (window, number) => asked(api.page(window, number)),
      sources: () => asked(api.sources()),
      backOff: (failures) => api.backOff(failures),
      now: () => api.now(),
      monotonic: () => api.monotonic(),
      notify: (notice) => api.notify(notice),
    };
  }

  /** A pass begins. @param before the count that it is held against */
  begin(pass: Shown, before: Count): void {
    this.#pass = pass;
    [this.#before, this.#after] = [before, undefined];
    this.#sum.passes += 1;
    this.#onPass();
  }

  add(emitted: number, suppressed: number): void {
    this.#sum.emitted += emitted;
    this.#sum.suppressed += suppressed;
  }

  /** What was added up since the last call, for a window of this kind. */
  take(kind: Window["kind"]): WindowFacts {
    const rowsOf = (count?: Count): number | null => {
      if (count?.known !== true) return null;
      return kind === "undated" ? count.undated : count.rows + (kind === "open" ? count.undated : 0);
    };
    const began = this.#began;
    this.#began = this.api.monotonic();
    const seconds = Math.round(this.#began - began) / 1000;
    const shown = (kind === "undated" ? this.#pass?.undated : this.#pass?.shown) ?? 0;
    const counts = { counted_before: rowsOf(this.#before), counted_after: rowsOf(this.#after) };
    const facts = { ...counts, shown, ...this.#sum, seconds };
    this.#sum = none();
    [this.#pass, this.#before, this.#after] = [undefined, undefined, undefined];
    return facts;
  }
}
