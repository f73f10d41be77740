import { request } from "undici";
import type { Sandbox } from "../../../sandbox/server.ts";

export const PEOPLE = "/api/v1/public/people";
export const STREAM = "/api/v1/public/people/stream";

type Headers = Readonly<Record<string, string>>;

export type Got = {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly text: string;
};

/** An ordinary request with the sandbox's key. Rejects if the body does not end properly. */
export async function get(sandbox: Sandbox, path: string, headers: Headers = {}): Promise<Got> {
  const sent = { "x-api-key": sandbox.key, ...headers };
  const answer = await request(`${sandbox.url}${path}`, { headers: sent });
  const header = (name: string): string | undefined => answer.headers[name]?.toString();
  return { status: answer.statusCode, header, text: await answer.body.text() };
}

type Row = { readonly id: string; readonly discoveredAt: string | null };

type Pagination = Readonly<Record<"page" | "limit", number> & Record<"total" | "totalPages", number | null>>;

type Page = { readonly pagination: Pagination; readonly data: readonly Row[] };

/** How many rows a list says that there are. */
export const totalOf = async (sandbox: Sandbox, query: string): Promise<number> =>
  (await list(sandbox, `?limit=1${query}`)).pagination.total ?? Number.NaN;

export async function list(sandbox: Sandbox, query = ""): Promise<Page> {
  const { status, text } = await get(sandbox, `${PEOPLE}${query}`);
  if (status !== 200) throw new Error(`Cannot list: ${status} ${text}`);
  return JSON.parse(text);
}

export const linesOf = (text: string): string[] => text.split("\n").slice(0, -1);

export async function stream(sandbox: Sandbox, query = ""): Promise<Row[]> {
  const { status, text } = await get(sandbox, `${STREAM}${query}`);
  if (status !== 200) throw new Error(`Cannot stream: ${status} ${text}`);
  return linesOf(text).map((line): Row => JSON.parse(line));
}
