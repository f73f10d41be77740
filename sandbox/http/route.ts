import type { Account } from "../data/account.ts";
import { invalidParameter } from "../data/service-error.ts";
import type { Answer, Delivery, Response } from "../faults/answer.ts";
import { distortionBy, faultyResponse, happenBefore } from "../faults/apply.ts";
import type { Distortion } from "../faults/distortion.ts";
import type { Fault, Unanswered } from "../faults/fault.ts";
import type { FaultBook } from "../faults/fault-book.ts";
import { authenticate, checkPlan, type RateLimit } from "./access.ts";
import { findEndpoint } from "./endpoints.ts";

/** The account behind the socket, and the limits of its clients. */
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

/** `drop`: the connection is reset. */
export type Decision = Response | "drop" | Unanswered;

/**
 * Decides what a request gets, in the service's order: the key, the rate limit, the plan, the parameters, the source.
 * Throws ServiceError for a refusal.
 */
export async function route(service: Service, asked: Asked): Promise<Decision> {
  const { account } = service;
  const { endpoint, params } = findEndpoint(asked.method, asked.path);
  const { key, limit } = asked.path.startsWith("/api/v1/external/") ? service.external : service;
  authenticate(asked.key, key);
  limit.admit(account.clock.now());
  const faults = strike(service.faults, { ...asked, kind: endpoint.kind }, asked.fault);
  const replacement = faults.find(({ spec }) => spec.kind === "answer");
  if (replacement?.spec.kind === "answer") {
    return inPlace(replacement.spec.answer(replacement, { account, key, path: asked.path }), asked, service);
  }
  checkPlan(account.plan, endpoint.plan);
  const submission = faults.map(({ spec }) => spec).find((spec) => spec.kind === "submission");
  if (submission?.taken === false) return "drop";
  const { query, body } = asked;
  happenBefore(faults, account);
  const distortion = distortionBy(faults);
  const answer = await endpoint.handler({ account, params, query, body, distortion });
  if (submission?.answer === "drop") return "drop";
  const tooLarge = faults.find(({ spec, value }) => spec.kind === "limit" && answer.rows() > value);
  if (tooLarge?.spec.kind === "limit") return inPlace(tooLarge.spec.answer(tooLarge), asked, service);
  const said = submission?.answer ?? dated(answer, account.clock.now(), distortion);
  return faultyResponse({ answer: said, delivery: plannedDelivery(said, asked, service) }, faults, account);
}

/** The answer of a fault. */
const inPlace = (answer: Answer | Unanswered, asked: Asked, service: Service): Decision =>
  typeof answer === "string" ? answer : { answer, delivery: plannedDelivery(answer, asked, service) };

function strike(
  book: FaultBook,
  target: Parameters<FaultBook["strike"]>[0],
  once: string | undefined,
): readonly Fault[] {
  try {
    return book.strike(target, once);
  } catch (error) {
    throw error instanceof RangeError ? invalidParameter(error.message) : error;
  }
}

/** The answer with the Date header that the service believes in. */
function dated(answer: Answer, now: number, { dateMs }: Distortion): Answer {
  if (dateMs === 0) return answer;
  return { ...answer, headers: { ...answer.headers, date: new Date(now + dateMs).toUTCString() } };
}

/** How an answer travels when nothing goes wrong. */
export function plannedDelivery(answer: Answer, asked: Asked, { bytesPerSecond }: Service): Delivery {
  const gzip = answer.gzip === "always" || (answer.gzip === "accepted" && asked.acceptsGzip);
  const framing = gzip || answer.stream !== undefined ? "chunked" : "length";
  return { framing, gzip, holdBack: 0, ending: "end", bytesPerSecond };
}
