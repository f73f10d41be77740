import type { Fault, FaultKind, RequestKind } from "./fault.ts";
import { parseFault } from "./faults.ts";

/** The properties of requests that a fault can select. */
export type Target = {
  readonly kind: RequestKind;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly acceptsGzip: boolean;
};

const bringsRows = ({ kind, query }: Target): boolean =>
  kind === "stream" || (kind === "list" && query.get("limit") !== "1");

type Active = { readonly fault: Fault; passed: number; struck: number };

/** The faults that are active, with how often each has struck. */
export class FaultBook {
  #active: Active[];

  constructor(expressions: readonly string[]) {
    this.#active = expressions.map(activate);
  }

  replace(expressions: readonly string[]): void {
    this.#active = expressions.map(activate);
  }

  /** How many requests each fault has struck, in the order in which they were given. */
  get strikes(): readonly number[] {
    return this.#active.map(({ struck }) => struck);
  }

  /**
   * The faults that strike a request, `once` before all others. Among those that decide what the client receives only
   * the first one strikes; distortions, events and what changes every row come on top.
   */
  strike(target: Target, once?: string): Fault[] {
    const struck: Fault[] = [];
    const candidates = once === undefined ? this.#active : [activate(once), ...this.#active];
    for (const active of candidates) {
      if (isExclusive(active.fault) && struck.some(isExclusive)) continue;
      if (matches(active.fault, target) && strikes(active))
        struck.push({ ...active.fault, nth: active.struck - 1 });
    }
    return struck;
  }
}

function activate(expression: string): Active {
  return { fault: parseFault(expression), passed: 0, struck: 0 };
}

function strikes(active: Active): boolean {
  if (active.struck >= active.fault.times) return false;
  if (active.passed < active.fault.skip) {
    active.passed++;
    return false;
  }
  active.struck++;
  return true;
}

const isExclusive = ({ spec: { kind, combines = false } }: Fault): boolean =>
  !combines && (kind === "answer" || kind === "cut" || kind === "lines" || kind === "submission");

function matches(fault: Fault, target: Target): boolean {
  const { query } = target;
  return (
    isAt(fault.path, target.path) &&
    isDay(fault.from, query.get("discovered_from")) &&
    isDay(fault.to, query.get("discovered_to")) &&
    canStrike(fault, target)
  );
}

/** A path that ends in `$` must be the end of the request's path; else it may be any part of it. */
function isAt(wanted: string | undefined, path: string): boolean {
  if (wanted === undefined) return true;
  return wanted.endsWith("$") ? path.endsWith(wanted.slice(0, -1)) : path.includes(wanted);
}

const isDay = (wanted: string | undefined, asked: string | null): boolean =>
  wanted === undefined || wanted === (asked ?? "none");

/** Cuts strike streams unless a path says otherwise; a gzip cut needs a client that takes gzip. */
function canStrike({ spec, path, ofRows }: Fault, target: Target): boolean {
  const { kind, query, acceptsGzip } = target;
  if (ofRows && !bringsRows(target)) return false;
  if (
    spec.only !== undefined &&
    (kind !== "list" || (query.get("limit") === "1") !== (spec.only === "counts"))
  )
    return false;
  if (spec.kind === "cut" && spec.cut.gzip === true && !acceptsGzip) return false;
  if (ofRows) return true;
  if (spec.on !== undefined) return spec.on.includes(kind);
  return (spec.kind === "cut" && path !== undefined) || fits(spec.kind, kind);
}

function fits(fault: FaultKind["kind"], request: RequestKind): boolean {
  switch (fault) {
    case "answer":
    case "distortion":
      return true;
    case "submission":
      return request === "job";
    case "lines":
    case "event":
    case "limit":
    case "cut":
      return request === "stream";
  }
}
