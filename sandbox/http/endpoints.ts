import type { Plan } from "../data/account.ts";
import { ServiceError } from "../data/service-error.ts";
import type { Answer } from "../faults/answer.ts";
import type { RequestKind } from "../faults/fault.ts";
import { listCompanies, listPeople, listSources, streamCompanies, streamPeople } from "./collections.ts";
import { checkView, lookupResult, submitCheck, submitLookup, verifyEmail } from "./jobs.ts";
import type { Exchange } from "./query.ts";

type Handler = (exchange: Exchange) => Answer | Promise<Answer>;

type Endpoint = {
  readonly method: "GET" | "POST";
  /** Matches a path; what matches a part in braces is a named group. */
  readonly pattern: RegExp;
  readonly plan: Plan | "any";
  readonly kind: RequestKind;
  readonly handler: Handler;
};

function endpoint(
  method: Endpoint["method"],
  path: string,
  plan: Endpoint["plan"],
  kind: RequestKind,
  handler: Handler,
): Endpoint {
  return {
    method,
    pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`),
    plan,
    kind,
    handler,
  };
}

const ENDPOINTS: readonly Endpoint[] = [
  endpoint("GET", "/api/v1/public/people", "enterprise", "list", listPeople),
  endpoint("GET", "/api/v1/public/people/stream", "enterprise", "stream", streamPeople),
  endpoint("GET", "/api/v1/public/companies", "enterprise", "list", listCompanies),
  endpoint("GET", "/api/v1/public/companies/stream", "enterprise", "stream", streamCompanies),
  endpoint("GET", "/api/v1/public/sources", "any", "list", listSources),
  endpoint("POST", "/api/v1/public/verify", "agency", "job", submitCheck),
  endpoint("GET", "/api/v1/public/verify/{jobId}", "agency", "poll", checkView),
  endpoint("POST", "/api/v1/external/company-lookup", "any", "job", submitLookup),
  endpoint("GET", "/api/v1/external/company-lookup/{jobId}/result", "any", "poll", lookupResult),
  endpoint("POST", "/api/v1/external/verify-email", "any", "job", verifyEmail),
];

type Matched = { readonly endpoint: Endpoint; readonly params: Readonly<Record<string, string>> };

/** The endpoint of a request. Throws 404 for an unknown path, 405 for another method. */
export function findEndpoint(method: string, path: string): Matched {
  const matched = ENDPOINTS.flatMap((endpoint): Matched[] => {
    const found = endpoint.pattern.exec(path);
    return found === null ? [] : [{ endpoint, params: { ...found.groups } }];
  });
  const found = matched.find(({ endpoint }) => endpoint.method === method);
  if (found !== undefined) return found;
  if (matched.length === 0) throw new ServiceError(404, "NOT_FOUND", "No such endpoint");
  const allow = matched.map(({ endpoint }) => endpoint.method).join(", ");
  throw new ServiceError(405, "METHOD_NOT_ALLOWED", "The endpoint does not take this method", { allow });
}
