import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { presentedKey } from "./auth.ts";
import { deliver } from "./delivery.ts";
import { errorAnswer, ServiceError } from "./envelope.ts";
import type { LogEntry, RequestLog } from "./request-log.ts";
import { type Asked, plannedDelivery, type Response, respond, type Service } from "./respond.ts";

/** A service behind a socket. */
export type Front = {
  readonly service: Service;
  readonly log: RequestLog;
  readonly basePath: string;
  readonly latencyMs: number;
};

/** Answers one request; whatever goes wrong ends in an answer or in the end of the connection. */
export async function serve(front: Front, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { service, log, latencyMs } = front;
  const asked = toAsked(request, front.basePath);
  const { method, path, query, key } = asked;
  const at = service.account.clock.now();
  const entry = log.open({ at, method, path, headersKey: key !== undefined }, query);
  response.sendDate = false;
  response.on("error", () => response.destroy());
  request.resume();
  if (latencyMs > 0) await delay(latencyMs);
  try {
    await send(service, await decided(service, asked), entry, response);
  } catch {
    response.destroy();
  }
}

async function decided(service: Service, asked: Asked): Promise<Response | undefined> {
  try {
    return await respond(service, asked);
  } catch (error) {
    const refusal =
      error instanceof ServiceError ? error : new ServiceError(500, "INTERNAL_ERROR", `Sandbox: ${error}`);
    const answer = errorAnswer(refusal);
    return { answer, delivery: plannedDelivery(answer, asked, service) };
  }
}

async function send(
  { account }: Service,
  decision: Response | undefined,
  entry: LogEntry,
  response: ServerResponse,
): Promise<void> {
  if (decision === undefined) return;
  entry.status = decision.answer.status;
  response.setHeader("date", new Date(account.clock.now()).toUTCString());
  await deliver(decision.answer, decision.delivery, response);
}

function toAsked({ method = "GET", url = "/", headers }: IncomingMessage, basePath: string): Asked {
  const [path = "/", search = ""] = url.split(/\?(.*)/s);
  const fault = headers["x-sandbox-fault"];
  return {
    method,
    path: path.startsWith(basePath) ? path.slice(basePath.length) : `outside ${path}`,
    query: new URLSearchParams(search),
    key: presentedKey(headers),
    acceptsGzip: /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(String(headers["accept-encoding"] ?? "")),
    fault: typeof fault === "string" ? fault : undefined,
  };
}
