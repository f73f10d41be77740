import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dice } from "./dice.ts";
import { NOW } from "./rows.ts";
import { CANARY, CANARY_NUMBER } from "./verdict.ts";

/** One request as the service sees it. `path`: without what a base URL puts before it. */
export type Request = { readonly method: string; readonly path: string; readonly query: URLSearchParams };
type Answering = (request: Request, response: ServerResponse) => void;

/** Plays one case; returns how many things it threw at the program. Throws what it finds. */
export type Target = { readonly play: (dice: Dice) => Promise<number>; close(): Promise<void> };

/** A target whose cases ask one service, whose answers each case sets, and write into one folder, which is empty at first. */
export async function openTarget(
  prepare: (service: { answer: Answering; readonly url: string }, folder: string) => Target["play"],
): Promise<Target> {
  const server = createServer(({ method = "GET", url = "/" }, response) => {
    const { pathname, searchParams: query } = new URL(url, "http://127.0.0.1");
    const path = pathname.slice(Math.max(0, pathname.indexOf("/api/")));
    service.answer({ method, path, query }, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service = { answer: faithfully, url };
  const folder = await mkdtemp(join(tmpdir(), "fuzz-"));
  return {
    play: prepare(service, folder),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export const KEY_NAMES = { people: "id", companies: "domain", sources: "slug" } as const;
export type Collection = keyof typeof KEY_NAMES;
export const COLLECTIONS = Object.keys(KEY_NAMES) as Collection[];

/** A row that the service holds, and on which day; or junk, which exports have, and lists count and do not show. */
export type Held = { readonly text: string; readonly day: string | null; readonly isJunk?: boolean };

/** The rows of one collection, some of them twice in an export, and all that a faithful service says of them. */
export class Account {
  readonly held: readonly Held[];
  readonly #newestFirst: readonly Held[];

  constructor(held: readonly Held[]) {
    this.held = held;
    this.#newestFirst = [...new Set(held)].sort((one, other) =>
      (other.day ?? "9999") < (one.day ?? "9999") ? -1 : 1,
    );
  }

  /** The rows of the days that a request asks for. */
  exported(query: URLSearchParams): readonly string[] {
    return this.held.filter(within(query)).map(({ text }) => text);
  }

  list(query: URLSearchParams): string {
    const [page, limit] = [Number(query.get("page") ?? 1), Number(query.get("limit") ?? 100)];
    const rows = this.#newestFirst.filter(within(query));
    const total = query.has("skip_count") ? null : rows.length;
    const totalPages = total === null ? null : Math.ceil(total / limit);
    const shown = rows.filter(({ isJunk }) => isJunk !== true).slice((page - 1) * limit, page * limit);
    const data = shown.map(({ text }) => text.trim());
    const pagination = JSON.stringify({ page, limit, total, totalPages });
    return `{"success":true,"data":[${data.join(",")}],"pagination":${pagination}}`;
  }
}

/** Whether a row lies on the days that a request asks for. */
function within(query: URLSearchParams): (held: Held) => boolean {
  const [from, to] = [query.get("discovered_from"), query.get("discovered_to")];
  return ({ day }) =>
    (from === null && to === null) || (day !== null && (from ?? "") <= day && day <= (to ?? "9999"));
}

export const HEADERS = { date: new Date(NOW).toUTCString() } as const;

const SMALL_DAYS = ["2026-03-06", "2026-03-05", "2026-02-10", null];
/** How many rows each collection of the small service has, and how many of them lie on its last two days. */
export const ROWS = SMALL_DAYS.length;
export const RECENT_ROWS = 2;

const ACCOUNTS = new Map(
  COLLECTIONS.map((name) => {
    const held = SMALL_DAYS.map((day, nth): Held => {
      const discoveredAt = day === null ? null : `${day}T03:04:05.000Z`;
      const values = { email: `${CANARY}@example.com`, companySize: Number(`${CANARY_NUMBER}${nth}`) };
      return {
        text: JSON.stringify({ [KEY_NAMES[name]]: `${CANARY}-${nth}`, ...values, discoveredAt }),
        day,
      };
    });
    return [`/api/v1/public/${name}`, new Account(held)];
  }),
);

/** What a service says to a request. */
export type Answer = { readonly status: number; readonly text: string };

const JOB = { job_id: "job_1_a", domain: "example.com", source: "acme", status: "success", credits_used: 2 };
const DONE = { status: "done", is_user: true, checked_at: "2026-03-05T00:00:00Z", cached: false };
const CONTACT = { first_name: CANARY, email: `${CANARY}@example.com`, verifications: [] };
const VERIFIED = { email: "a@x.com", status: "completed", sources: { acme: DONE } };
/** The jobs of both APIs, which are done as soon as they are asked for. */
const JOBS: readonly (readonly [request: RegExp, value: object])[] = [
  [/^POST .*\/company-lookup$/, { success: true, data: { ...JOB, sources: ["acme"] } }],
  [/^GET .*\/company-lookup\/[^/]+\/result$/, { ...JOB, created_at: DONE.checked_at, contacts: [CONTACT] }],
  [/^POST .*\/verify-email$/, { success: true, data: { email: `${CANARY}@example.com`, status: CANARY } }],
  [/^POST .*\/verify$/, { success: true, job_id: JOB.job_id, poll_after: null }],
  [/^GET .*\/verify\/[^/]+$/, { success: true, job_id: JOB.job_id, ...VERIFIED }],
];

/** What a faithful service with a few rows in each collection answers. */
export function faithful({ method, path, query }: Request): Answer {
  const job = JOBS.find(([asked]) => asked.test(`${method} ${path}`));
  if (job !== undefined && !path.includes("job_0_check"))
    return { status: 200, text: JSON.stringify(job[1]) };
  const account = ACCOUNTS.get(path.replace(/\/stream$/, ""));
  if (account === undefined) return { status: 404, text: refusal("JOB_NOT_FOUND") };
  const isExport = path.endsWith("/stream");
  return { status: 200, text: isExport ? account.exported(query).join("\n") : account.list(query) };
}

const refusal = (code: string): string =>
  JSON.stringify({ success: false, error: { code, message: CANARY } });

/** Answers as a healthy service does. */
export const faithfully: Answering = (request, response) => {
  const { status, text } = faithful(request);
  response.writeHead(status, HEADERS).end(text);
};
const refusingWith =
  (status: number, code: string): Answering =>
  (_, response) =>
    void response.writeHead(status, HEADERS).end(refusal(code));
/** Answers as a service that does not know the key. */
export const refusing = refusingWith(401, "INVALID_API_KEY");
/** Answers as a service whose plan has no such list, or as another one. */
export const elsewhere = [refusing, refusingWith(403, "ENDPOINT_NOT_ON_PLAN"), refusingWith(404, "X")];
