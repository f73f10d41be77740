import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../data/service-error.ts";
import { errorAnswer } from "../faults/answer.ts";
import { presentedKey } from "./access.ts";
import { deliver } from "./delivery.ts";
import type { LogEntry, RequestLog } from "./request-log.ts";
import { type Asked, type Decision, plannedDelivery, route, type Service } from "./route.ts";

/** A service behind a socket. */
export type Front = {
  readonly service: Service;
  readonly log: RequestLog;
  readonly basePath: string;
  readonly latencyMs: number;
};

/** Answers one request. Never rejects: whatever goes wrong ends in an answer or in the end of the connection. */
export async function handle(
  front: Front,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { service, log, latencyMs } = front;
  const arriving = bodyOf(request);
  const asked = toAsked(request, front.basePath);
  const { method, path, query, key } = asked;
  const at = service.account.clock.now();
  const entry = log.open({ at, method, path, headersKey: key !== undefined }, query);
  response.sendDate = false;
  response.on("error", () => response.destroy());
  if (latencyMs > 0) await delay(latencyMs);
  try {
    const decision = await decided(service, { ...asked, body: await arriving });
    await send(service, decision, entry, response);
  } catch {
    response.destroy();
  }
}

async function decided(service: Service, asked: Asked): Promise<Decision> {
  try {
    return await route(service, asked);
  } catch (error) {
    const refusal =
      error instanceof ServiceError ? error : new ServiceError(500, "INTERNAL_ERROR", `Sandbox: ${error}`);
    const answer = errorAnswer(refusal);
    return { answer, delivery: plannedDelivery(answer, asked, service) };
  }
}

async function send(
  { account }: Service,
  decision: Decision,
  entry: LogEntry,
  response: ServerResponse,
): Promise<void> {
  if (decision === "silence") return;
  if (decision === "hints") return await hint(response);
  if (decision === "drop") {
    response.socket?.resetAndDestroy();
    return;
  }
  entry.status = decision.answer.status;
  response.setHeader("date", new Date(account.clock.now()).toUTCString());
  await deliver(decision.answer, decision.delivery, response);
}

/** Informational responses, each second, until the client goes away. */
async function hint(response: ServerResponse): Promise<void> {
  while (response.socket?.destroyed === false) {
    response.writeEarlyHints({ link: "</style.css>; rel=preload; as=style" });
    await delay(HINT_MS);
  }
}

const HINT_MS = 1000;
const LONGEST_BODY = 65_536;

/** The body of a POST, cut after 64 KiB, which is more than any body of this interface has. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  if (request.method !== "POST") {
    request.resume();
    return "";
  }
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  } catch {
    return "";
  }
  return Buffer.concat(chunks).subarray(0, LONGEST_BODY).toString("utf8");
}

function toAsked(
  { method = "GET", url = "/", headers }: IncomingMessage,
  basePath: string,
): Omit<Asked, "body"> {
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
