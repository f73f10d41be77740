import { connect } from "node:net";
import { request } from "undici";
import type { Sandbox } from "../../../sandbox/server.ts";

export const PEOPLE = "/api/v1/public/people";
export const STREAM = "/api/v1/public/people/stream";
export const SOURCES = "/api/v1/public/sources";

type Headers = Readonly<Record<string, string>>;

export type Got = {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly text: string;
};

/** An ordinary request with the sandbox's key. Rejects if the body does not end properly. */
export async function get(sandbox: Sandbox, path: string, headers: Headers = {}): Promise<Got> {
  return await ask(`${sandbox.url}${path}`, { headers: { "x-api-key": sandbox.key, ...headers } });
}

export async function ask(url: string, options: Parameters<typeof request>[1]): Promise<Got> {
  const answer = await request(url, options);
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

export const codeOf = ({ text }: Got): string => JSON.parse(text).error.code;

/** What really came over a socket, and how it ended; `open` means that the server left it open and fell silent. */
export type Raw = {
  readonly status: number;
  readonly head: string;
  readonly body: Buffer;
  readonly ended: "fin" | "reset" | "open";
};

const SILENCE_MS = 800;
/** How long a connection is watched after a body that has ended as it should. */
const AFTERMATH_MS = 80;
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

/** A request on a socket of its own, read until the server ends it or falls silent. */
export async function rawGet(sandbox: Sandbox, path: string): Promise<Raw> {
  const chunks: Buffer[] = [];
  const ended = await new Promise<Raw["ended"]>((resolve) => {
    const socket = connect(sandbox.port, "127.0.0.1");
    socket.setTimeout(SILENCE_MS, () => {
      resolve("open");
      socket.destroy();
    });
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (Buffer.concat(chunks.slice(-2)).subarray(-LAST_CHUNK.length).equals(LAST_CHUNK))
        socket.setTimeout(AFTERMATH_MS);
    });
    socket.on("end", () => resolve("fin"));
    socket.on("error", () => resolve("reset"));
    socket.write(`GET ${path} HTTP/1.1\r\nhost: sandbox\r\nx-api-key: ${sandbox.key}\r\n\r\n`);
  });
  const bytes = Buffer.concat(chunks);
  const split = bytes.indexOf("\r\n\r\n");
  const head = bytes.subarray(0, Math.max(0, split)).toString("latin1").toLowerCase();
  return { status: Number(head.split(" ")[1] ?? 0), head, body: bytes.subarray(split + 4), ended };
}

/** The content of a chunked body, and whether its last chunk came. */
export function dechunk(body: Buffer): { readonly content: Buffer; readonly complete: boolean } {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = body.indexOf("\r\n", at);
    const size = end === -1 ? Number.NaN : Number.parseInt(body.subarray(at, end).toString("latin1"), 16);
    if (Number.isNaN(size) || size === 0) return { content: Buffer.concat(parts), complete: size === 0 };
    parts.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}
