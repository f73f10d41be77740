import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Listens on a free port of this machine until the test ends. Returns the port. */
export async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** A port of this machine on which nothing listens. */
export async function deadPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A service of the test's own, until the test ends. `requests`: those that it got so far. */
export type Served = { readonly url: string; readonly requests: readonly IncomingMessage[] };

export async function serve(answer: RequestListener): Promise<Served> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  return { url: `http://127.0.0.1:${await listen(server)}`, requests };
}

/** A list's answer. */
export const listOf = (total: number | null, data: unknown = []): string =>
  JSON.stringify({ success: true, data, pagination: { page: 1, limit: 1, total } });
