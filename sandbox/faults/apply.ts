import type { Account } from "../data/account.ts";
import type { Answer, Response } from "./answer.ts";
import { applyCut } from "./cut-faults.ts";
import { type Distortion, FAITHFUL } from "./distortion.ts";
import type { Fault } from "./fault.ts";
import { happenAt, happenEvery } from "./line-faults.ts";

/** The distortion by all faults together. */
export function distortionBy(faults: readonly Fault[]): Distortion {
  return faults.reduce(
    (distortion, fault) =>
      fault.spec.kind === "distortion" ? fault.spec.alter(distortion, fault) : distortion,
    FAITHFUL,
  );
}

/** Runs events at the service before it answers. */
export function happenBefore(faults: readonly Fault[], account: Account): void {
  const everyone = { collection: account.people, filter: {} };
  for (const fault of faults) {
    if (fault.spec.kind === "event" && fault.spec.when === "before")
      fault.spec.happen(fault, account, everyone, fault.nth);
  }
}

/** The response as the faults leave it. */
export function faultyResponse(response: Response, faults: readonly Fault[], account: Account): Response {
  return faults.reduce((current, fault) => applyFault(current, fault, account), response);
}

function applyFault(response: Response, fault: Fault, account: Account): Response {
  const { answer, delivery } = response;
  const { spec } = fault;
  switch (spec.kind) {
    case "cut":
      return applyCut(response, fault, spec.cut, rowsBefore(fault, answer));
    case "lines": {
      const pieces = spec.rewrite(answer.pieces, rowsBefore(fault, answer), fault);
      const ending = spec.closes ? "end-close" : delivery.ending;
      return { answer: { ...answer, pieces }, delivery: { ...delivery, ending } };
    }
    case "event": {
      const scope = answer.stream ?? answer.page;
      if (scope === undefined || spec.when === "before") return response;
      const happen = (nth: number): void => spec.happen(fault, account, scope, nth);
      const pieces =
        spec.when === "repeatedly"
          ? happenEvery(answer.pieces, Number(fault.options.get("every") ?? 10), happen)
          : happenAt(answer.pieces, rowsBefore(fault, answer), () => happen(0));
      return { answer: { ...answer, pieces }, delivery };
    }
    case "submission":
    case "limit":
    case "distortion":
    case "answer":
      return response;
  }
}

function rowsBefore({ after }: Fault, { rows }: Answer): number {
  const count = rows();
  return after === undefined ? Math.floor(count / 2) : Math.min(after, count);
}
