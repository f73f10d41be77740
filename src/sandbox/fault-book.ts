import type { Fault } from "./fault.ts";
import { parseFault } from "./faults.ts";
import type { Route } from "./routes.ts";

/** What a fault can tell requests apart by. */
export type Target = {
  readonly kind: Route["kind"];
  readonly path: string;
  readonly query: URLSearchParams;
  readonly acceptsGzip: boolean;
};

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

  /**
   * The faults that strike a request, `once` before all others. Of those that decide what the client receives only
   * the first one strikes; those that bend totals and rows, and events, come on top.
   */
  strike(target: Target, once?: string): Fault[] {
    const struck: Fault[] = [];
    const candidates = once === undefined ? this.#active : [activate(once), ...this.#active];
    for (const active of candidates) {
      if (isExclusive(active.fault) && struck.some(isExclusive)) continue;
      if (matches(active.fault, target) && strikes(active)) struck.push(active.fault);
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

const isExclusive = ({ kind: { kind } }: Fault): boolean =>
  kind === "answer" || kind === "cut" || kind === "lines" || kind === "submission";

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
function canStrike({ kind, path }: Fault, { kind: route, query, acceptsGzip }: Target): boolean {
  switch (kind.kind) {
    case "answer":
      return !kind.countsOnly || (route === "list" && query.get("limit") === "1");
    case "view":
      return true;
    case "submission":
      return route === "job";
    case "lines":
    case "event":
      return route === "stream";
    case "cut":
      return (route === "stream" || path !== undefined) && (kind.cut.gzip !== true || acceptsGzip);
  }
}
