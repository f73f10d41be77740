import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** How a service behaves, request by request; what is left out is as it should be. */
export type Behaviour = {
  /** Called before a submission is taken; returns an answer instead of taking it. */
  readonly refuse?: (item: string) => Refusal | undefined;
  /** The answer to the question for a result, instead of the usual one. */
  readonly result?: (jobId: string, item: string) => Refusal | undefined;
  /** Another answer to each request of a method about an item that was bought, or about one of these items. */
  readonly wild?: {
    readonly method: string;
    readonly items?: readonly string[];
    readonly answer: (response: ServerResponse, item: string) => unknown;
  };
  /** How many contacts an item has; default 1. */
  readonly price?: number;
  /** The rows of people. */
  readonly people?: readonly Readonly<Record<string, string>>[];
  /** How many of them are counted and not shown; default 0. */
  readonly omitted?: number;
  /** Each answer waits for this. */
  readonly until?: () => Promise<void>;
  /** Called when each request is here, and when its answer has left. */
  readonly onStep?: () => void;
};

export type Refusal = {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string | string[]>>;
};

/** Refuses these items, or all. */
export const refusing = (status: number, code: string, items?: readonly string[]): Behaviour => ({
  refuse: (item) => (items?.includes(item) === false ? undefined : envelope(status, code)),
});

/** A service for jobs that counts every purchase. */
export class CountingService {
  /** Every item that was bought, once for each time. */
  readonly bought: string[] = [];
  /** Every item that was submitted, those that were refused included. */
  readonly tried: string[] = [];
  /** The path and the item of every purchase. */
  readonly orders: string[] = [];
  readonly requests: string[] = [];
  behaviour: Behaviour = {};
  readonly #jobs = new Map<string, string>();
  readonly #server: Server;
  #offset = 0;

  private constructor() {
    this.#server = createServer({ keepAliveTimeout: 1_000 }, (request, response) => {
      // A program that is killed leaves half a request.
      this.#handle(request, response).catch(() => request.socket.destroy());
    });
    this.#server.unref();
  }

  static async start(): Promise<CountingService> {
    const service = new CountingService();
    service.#server.listen(0, "127.0.0.1");
    await new Promise((resolve) => service.#server.once("listening", resolve));
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Orders that were made more than once: an e-mail may be checked and verified. */
  get orderedTwice(): readonly string[] {
    return this.orders.filter((order, nth) => this.orders.indexOf(order) !== nth);
  }

  advance(ms: number): void {
    this.#offset += ms;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "" } = request;
    this.requests.push(`${method} ${url}`);
    let text = "";
    for await (const chunk of request) text += String(chunk);
    this.behaviour.onStep?.();
    await this.behaviour.until?.();
    const given = method === "POST" ? this.#submit(url, JSON.parse(text)) : this.#look(url);
    response.setHeader("date", new Date(Date.now() + this.#offset).toUTCString());
    const item = method === "POST" ? (this.bought.at(-1) ?? "") : (this.#jobs.get(jobIdOf(url)) ?? "");
    const { wild } = this.behaviour;
    if (wild?.method === method && item !== "" && (wild.items ?? [item]).includes(item)) {
      wild.answer(response, item);
      return;
    }
    const body = typeof given.body === "string" ? given.body : JSON.stringify(given.body);
    response.writeHead(given.status, { "content-type": "application/json", ...given.headers });
    response.end(body, () => this.behaviour.onStep?.());
  }

  #submit(url: string, { domain, email }: { domain?: string; email?: string }): Refusal {
    const item = domain ?? email ?? "";
    this.tried.push(item);
    const refusal = this.behaviour.refuse?.(item);
    if (refusal !== undefined) return refusal;
    const jobId = `job_${this.bought.length}_x`;
    this.bought.push(item);
    this.orders.push(`${url} ${item}`);
    this.#jobs.set(jobId, item);
    if (url.endsWith("verify-email")) return answer(200, { success: true, email, deliverable: true });
    if (url.endsWith("/verify")) return answer(202, { success: true, job_id: jobId, poll_after: null });
    const data = { job_id: jobId, domain, sources: [], scheduled_for: "immediate" };
    return answer(202, { success: true, data });
  }

  #look(url: string): Refusal {
    if (url.startsWith("/api/v1/public/people")) return this.#people(url);
    const jobId = jobIdOf(url);
    const item = this.#jobs.get(jobId);
    if (item === undefined) return envelope(404, "JOB_NOT_FOUND");
    const instead = this.behaviour.result?.(jobId, item);
    if (instead !== undefined) return instead;
    const created_at = new Date(Date.now() + this.#offset).toISOString();
    if (url.includes("/public/verify/")) {
      const sources = { one: { status: "done", is_user: true, checked_at: created_at, cached: false } };
      return answer(200, { success: true, job_id: jobId, email: item, status: "completed", sources });
    }
    const { price = 1 } = this.behaviour;
    const verifications = [{ source: "one", isVerified: true }];
    const contacts = Array.from({ length: price }, (_, nth) => ({ email: `p${nth}@${item}`, verifications }));
    const job = { job_id: jobId, domain: item, source: "one", status: "success" };
    return answer(200, { ...job, contacts, credits_used: price, created_at });
  }

  #people(url: string): Refusal {
    const { people = [], omitted = 0 } = this.behaviour;
    const asked = Object.fromEntries(new URL(url, this.url).searchParams);
    const { discovered_from: from = "", discovered_to: to = "9999", page = "1", limit = "1000" } = asked;
    const isAsked = (day: string): boolean => day >= from && day <= to;
    const rows = people.filter(({ discoveredAt = "" }) => isAsked(discoveredAt.slice(0, 10)));
    const shown = rows.slice(omitted);
    if (url.includes("/stream"))
      return answer(
        200,
        shown.reduce((lines, row) => `${lines}${JSON.stringify(row)}\n`, ""),
      );
    const [first, size, total] = [(Number(page) - 1) * Number(limit), Number(limit), rows.length];
    const pagination = { page: Number(page), limit: size, total, totalPages: Math.ceil(total / size) };
    return answer(200, { success: true, pagination, data: shown.slice(first, first + size) });
  }
}

const answer = (status: number, body: unknown): Refusal => ({ status, body });

const jobIdOf = (url: string): string =>
  decodeURIComponent(url.split("/").at(url.endsWith("/result") ? -2 : -1) ?? "");

/** The service's error envelope. */
export const envelope = (status: number, code: string): Refusal =>
  answer(status, { success: false, error: { code, message: "for people" } });
