import type { Account } from "./account.ts";
import type { Answer, Scope } from "./answer.ts";
import { authenticate, checkPlan } from "./auth.ts";
import { applyCut } from "./cut-faults.ts";
import type { Delivery } from "./delivery.ts";
import { errorAnswer, invalidParameter, ServiceError } from "./envelope.ts";
import type { Exchange } from "./exchange.ts";
import type { Fault } from "./fault.ts";
import type { FaultBook } from "./fault-book.ts";
import type { RateLimit } from "./limit.ts";
import { happenAt } from "./line-faults.ts";
import { findRoute } from "./routes.ts";
import { FAITHFUL } from "./view.ts";

/** What stands behind the socket: the account and who may ask it how often. */
export type Service = {
  readonly account: Account;
  readonly key: string;
  readonly limit: RateLimit;
  /** The External API's key and its limit, which may be the same. */
  readonly external: { readonly key: string; readonly limit: RateLimit };
  readonly faults: FaultBook;
  readonly bytesPerSecond: number | undefined;
};

/** A request without its socket. */
export type Asked = {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly key: string | undefined;
  readonly acceptsGzip: boolean;
  /** The fault that the request itself asks for. */
  readonly fault: string | undefined;
  /** The body of a POST; empty for all else. */
  readonly body: string;
};

export type Response = { readonly answer: Answer; readonly delivery: Delivery };

/** Undefined never gets an answer; for `drop` the connection is reset instead. */
export type Decision = Response | "drop" | undefined;

/**
 * Decides what a request gets, in the service's order: the key, the rate limit, the plan, the parameters, the source.
 * Refusals are thrown.
 */
export async function respond(service: Service, asked: Asked): Promise<Decision> {
  const { account } = service;
  const { route, params } = findRoute(asked.method, asked.path);
  const { key, limit } = asked.path.startsWith("/api/v1/external/") ? service.external : service;
  authenticate(asked.key, key);
  limit.admit(account.clock.now());
  const faults = strike(service.faults, { ...asked, kind: route.kind }, asked.fault);
  const exchange = exchangeOf(account, asked, params, faults);
  for (const fault of faults) {
    if (fault.kind.kind !== "answer") continue;
    const answer = fault.kind.answer(fault, exchange);
    return answer && { answer, delivery: plannedDelivery(answer, asked, service) };
  }
  checkPlan(account.plan, route.plan);
  const submission = faults.map(({ kind }) => kind).find((kind) => kind.kind === "submission");
  if (submission?.taken === false) return "drop";
  const answer = await route.handler(exchange);
  if (submission?.answers === false) return "drop";
  if (submission !== undefined) {
    const failed = errorAnswer(
      new ServiceError(500, "INTERNAL_ERROR", "The service failed after it took this"),
    );
    return { answer: failed, delivery: plannedDelivery(failed, asked, service) };
  }
  return faulty({ answer, delivery: plannedDelivery(answer, asked, service) }, faults, account);
}

function strike(
  book: FaultBook,
  target: Parameters<FaultBook["strike"]>[0],
  once: string | undefined,
): Fault[] {
  try {
    return book.strike(target, once);
  } catch (error) {
    throw error instanceof RangeError ? invalidParameter(error.message) : error;
  }
}

function exchangeOf(
  account: Account,
  asked: Asked,
  params: Exchange["params"],
  faults: readonly Fault[],
): Exchange {
  const view = faults.reduce(
    (bent, fault) => (fault.kind.kind === "view" ? fault.kind.alter(bent, fault) : bent),
    FAITHFUL,
  );
  return { account, params, query: asked.query, key: asked.key ?? "", view, body: asked.body };
}

/** How an answer travels when nothing goes wrong. */
export function plannedDelivery(
  answer: Answer,
  { acceptsGzip }: Asked,
  { bytesPerSecond }: Service,
): Delivery {
  const gzip = (answer.compressible ?? false) && acceptsGzip;
  const framing = gzip || answer.stream !== undefined ? "chunked" : "length";
  return { framing, gzip, holdBack: 0, ending: "end", bytesPerSecond };
}

function faulty(response: Response, faults: readonly Fault[], account: Account): Response {
  return faults.reduce((current, fault) => applyFault(current, fault, account), response);
}

function applyFault(response: Response, fault: Fault, account: Account): Response {
  const { answer, delivery } = response;
  const { kind } = fault;
  switch (kind.kind) {
    case "cut": {
      const [cut, delivered] = applyCut(answer, delivery, fault, kind.cut, rowsBefore(fault, answer));
      return { answer: cut, delivery: delivered };
    }
    case "lines": {
      const pieces = kind.rewrite(answer.pieces, rowsBefore(fault, answer), fault);
      return {
        answer: { ...answer, pieces },
        delivery: kind.closes ? { ...delivery, ending: "end-close" } : delivery,
      };
    }
    case "event":
      return answer.stream === undefined
        ? response
        : { answer: withEvent(answer, answer.stream, fault, account), delivery };
    case "submission":
    case "view":
    case "answer":
      return response;
  }
}

function withEvent(answer: Answer, scope: Scope, fault: Fault, account: Account): Answer {
  const { kind } = fault;
  if (kind.kind !== "event") return answer;
  const pieces = happenAt(answer.pieces, rowsBefore(fault, answer), () => kind.happen(fault, account, scope));
  return { ...answer, pieces };
}

function rowsBefore({ after }: Fault, { rows }: Answer): number {
  const count = rows();
  return after === undefined ? Math.floor(count / 2) : Math.min(after, count);
}
