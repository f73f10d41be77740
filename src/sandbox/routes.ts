import type { Answer } from "./answer.ts";
import type { Plan } from "./auth.ts";
import { ServiceError } from "./envelope.ts";
import type { Exchange } from "./exchange.ts";
import { checkView, lookupResult, submitCheck, submitLookup, verifyEmail } from "./jobs.ts";
import { listCompanies, listPeople, listSources } from "./lists.ts";
import { streamCompanies, streamPeople } from "./streams.ts";

export type Route = {
  readonly method: "GET" | "POST";
  /** A part in braces stands for any one segment, which the handler finds in `params`. */
  readonly path: string;
  readonly plan: Plan | "any";
  /** `job`: a submission; `poll`: a question after one. */
  readonly kind: "list" | "stream" | "job" | "poll";
  readonly handler: (exchange: Exchange) => Answer | Promise<Answer>;
};

export const ROUTES: readonly Route[] = [
  { method: "GET", path: "/api/v1/public/people", plan: "enterprise", kind: "list", handler: listPeople },
  {
    method: "GET",
    path: "/api/v1/public/people/stream",
    plan: "enterprise",
    kind: "stream",
    handler: streamPeople,
  },
  {
    method: "GET",
    path: "/api/v1/public/companies",
    plan: "enterprise",
    kind: "list",
    handler: listCompanies,
  },
  {
    method: "GET",
    path: "/api/v1/public/companies/stream",
    plan: "enterprise",
    kind: "stream",
    handler: streamCompanies,
  },
  { method: "GET", path: "/api/v1/public/sources", plan: "any", kind: "list", handler: listSources },
  { method: "POST", path: "/api/v1/public/verify", plan: "agency", kind: "job", handler: submitCheck },
  { method: "GET", path: "/api/v1/public/verify/{jobId}", plan: "agency", kind: "poll", handler: checkView },
  {
    method: "POST",
    path: "/api/v1/external/company-lookup",
    plan: "any",
    kind: "job",
    handler: submitLookup,
  },
  {
    method: "GET",
    path: "/api/v1/external/company-lookup/{jobId}/result",
    plan: "any",
    kind: "poll",
    handler: lookupResult,
  },
  { method: "POST", path: "/api/v1/external/verify-email", plan: "any", kind: "job", handler: verifyEmail },
];

export type Matched = { readonly route: Route; readonly params: Readonly<Record<string, string>> };

/** The route of a request, or a refusal: 404 for a path that nobody serves, 405 for another method. */
export function findRoute(method: string, path: string): Matched {
  const candidates = COMPILED.flatMap(({ route, pattern }) => {
    const found = pattern.exec(path);
    return found === null ? [] : [{ route, params: { ...found.groups } }];
  });
  const matched = candidates.find(({ route }) => route.method === method);
  if (matched !== undefined) return matched;
  if (candidates.length === 0) throw new ServiceError(404, "NOT_FOUND", "No such endpoint");
  const allow = candidates.map(({ route }) => route.method).join(", ");
  throw new ServiceError(405, "METHOD_NOT_ALLOWED", "The endpoint does not take this method", { allow });
}

const COMPILED = ROUTES.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`),
}));
