import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import type { Client } from "../../src/api/client.ts";
import { STREAMS } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import { BodyError, DataError, TransientError, UnreachableError } from "../../src/errors.ts";
import { Session } from "../../src/run/session.ts";
import type { Notice } from "../../src/streams/event.ts";
import type { StreamApi } from "../../src/streams/stream-api.ts";
import { fastClock } from "../faultlab/read-once.ts";

const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";
const ALL = { kind: "all" } as const;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serveSockets(listener: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    listener(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Opened = { readonly api: StreamApi; readonly client: Client; readonly notices: Notice[] };

function open(url: string, idle = 0.3): Opened {
  const parsed = parseConfig({ base_url: url, api_key: KEY, requests_per_minute: 6000 }, {});
  const notices: Notice[] = [];
  const runtime = {
    clock: fastClock(),
    signal: new AbortController().signal,
    environment: {},
    random: () => 0,
  };
  const session = new Session(
    { ...parsed, idleTimeoutSeconds: idle },
    runtime,
    (notice) => void notices.push(notice),
  );
  closers.push(() => session.close());
  const [people] = STREAMS;
  const rules = { cursor: "discoveredAt", onMissingKey: "reject", schema: null } as const;
  return { api: session.streamApi(people, rules), client: session.client, notices };
}

async function errorOf(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error("It did not fail");
}

async function keysOf(api: StreamApi): Promise<string[]> {
  const keys: string[] = [];
  for await (const { rows } of api.stream(ALL)) keys.push(...rows.map(({ key }) => key));
  return keys;
}

const list = (data: unknown, total = 1): string =>
  JSON.stringify({ success: true, pagination: { page: 1, limit: 1, total, totalPages: 1 }, data });

describe("an answer that is no export", () => {
  it("is read no further than 32 MiB of it, decompressed, and is not asked for again", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 32));
    let requests = 0;
    const url = await serve((_, response) => {
      requests += 1;
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
    });
    const error = await errorOf(open(url, 5).api.count(ALL));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain("longer than 32 MiB");
    expect(requests).toBe(1);
  });

  it("may come in many gzip members, which count together", async () => {
    const member = gzipSync(Buffer.alloc(1024 * 1024, 32));
    const end = gzipSync(Buffer.from(list([])));
    const small = await serve((_, response) => {
      response.writeHead(200, { "content-encoding": "x-gzip" }).end(Buffer.concat([member, member, end]));
    });
    expect((await open(small, 5).api.count(ALL)).rows).toBe(1);
    const large = await serve((_, response) => {
      const many = Array.from({ length: 40 }, () => member);
      response.writeHead(200, { "content-encoding": "gzip" }).end(Buffer.concat(many));
    });
    expect((await errorOf(open(large, 5).api.count(ALL))).message).toContain("longer than 32 MiB");
  });

  it.each(["GZIP", " Gzip", "x-gzip", "X-GZIP"])("may be encoded as %j", async (encoding) => {
    const url = await serve((_, response) => {
      response.writeHead(200, { "content-encoding": encoding }).end(gzipSync(Buffer.from(list([], 7))));
    });
    expect((await open(url).api.count(ALL)).rows).toBe(7);
  });

  it("may not be encoded as was not asked for", async () => {
    const plain = await serve((_, response) => {
      response.writeHead(200, { "content-encoding": "br" }).end("x");
    });
    const error = await errorOf(open(plain).api.count(ALL));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain('encoded as "br"');
    expect(await errorOf(keysOf(open(plain).api))).toBeInstanceOf(DataError);
  });

  it("has a deadline, however steadily its bytes drip", async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const timer = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(timer));
    });
    const error = await errorOf(open(url, 0.1).api.count(ALL));
    expect(error).toBeInstanceOf(TransientError);
    expect(error.message).toContain("did not end in time");
  });

  it("has a deadline before its headers too, however many other heads come first", async () => {
    const url = await serveSockets((socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 20);
      socket.on("close", () => clearInterval(timer));
    });
    expect((await errorOf(open(url, 0.1).api.count(ALL))).message).toMatch(/in time/);
    expect((await errorOf(keysOf(open(url, 0.1).api))).message).toMatch(/in time/);
  });

  it("holds no more elements than a page can", async () => {
    const url = await serve((_, response) => {
      response.end(`{"success":true,"data":[${"0,".repeat(1_000_000)}0],"pagination":{"total":5}}`);
    });
    const error = await errorOf(open(url, 5).api.page(ALL, 1));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain("100,000");
  });

  it("keeps the digits of its integers, and holds a U+FFFD for a byte that is not UTF-8", async () => {
    const url = await serve((_, response) => {
      const page = `{"success":true,"data":[{ "id": "1",\n"n": 12345678901234567890, "x":"\xff" }],"pagination":{"total":1}}`;
      response.end(Buffer.from(page, "latin1"));
    });
    const { rows } = await open(url).api.page(ALL, 1);
    expect(rows.map(({ raw }) => Buffer.from(raw, "latin1").toString("utf8"))).toEqual([
      '{"id":"1","n":12345678901234567890,"x":"\ufffd"}',
    ]);
  });

  it("is not JSON if it is nested too deep", async () => {
    const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
    const url = await serve((_, response) => {
      response.end(`{"success":true,"data":[{"id":"1","x":${deep}}],"pagination":{"total":1}}`);
    });
    expect((await errorOf(open(url).api.page(ALL, 1))).message).toContain("is not JSON");
  });
});

describe("an export", () => {
  it("ends if no row comes while rows are wanted, whatever else does", async () => {
    for (const line of ["\n", " \n", "garbage\n", "{}\n"]) {
      const url = await serve((_, response) => {
        response.write('{"id":"1"}\n');
        const timer = setInterval(() => response.write(line), 10);
        response.on("close", () => clearInterval(timer));
      });
      const { api } = open(url, 0.2);
      const keys: string[] = [];
      const read = async (): Promise<void> => {
        for await (const { rows } of api.stream(ALL)) keys.push(...rows.map(({ key }) => key));
      };
      const error = await errorOf(read());
      expect(error).toBeInstanceOf(BodyError);
      expect(error.message).toContain("no row came for 0.2 s");
      expect(keys).toEqual(['"1"']);
    }
  });

  it("hands on every row that is one, and then says what was none", async () => {
    const deep = `{"id":"4","x":${'{"x":'.repeat(2_000)}1${"}".repeat(2_001)}`;
    const url = await serve((_, response) => {
      response.end(`{"id":"1"}\nnonsense\n{"id":"2"}\n{"name":"x"}\n{"id":"3"}\n${deep}\n`);
    });
    const { api } = open(url);
    const keys: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { rows } of api.stream(ALL)) keys.push(...rows.map(({ key }) => key));
    };
    const error = await errorOf(read());
    expect(error).toBeInstanceOf(BodyError);
    expect(error.message).toMatch(/line 2 \(8 bytes, sha256 [0-9a-f]{16}…\) is no JSON object/);
    expect(keys).toEqual(['"1"', '"2"', "", '"3"']);
  });

  it("hands on the rows before a cut", async () => {
    const url = await serve((_, response) => {
      response.write('{"id":"1"}\n{"id":"2"}\n');
      setTimeout(() => response.destroy(), 20);
    });
    const keys: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { rows } of open(url).api.stream(ALL)) keys.push(...rows.map(({ key }) => key));
    };
    expect(await errorOf(read())).toBeInstanceOf(BodyError);
    expect(keys).toEqual(['"1"', '"2"']);
  });

  it("is read no further after a thousand lines that are no rows", async () => {
    const url = await serve((_, response) => {
      response.end(`${"<p>\n".repeat(5_000)}{"id":"1"}\n`);
    });
    const keys: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { rows } of open(url).api.stream(ALL)) keys.push(...rows.map(({ key }) => key));
    };
    expect(await errorOf(read())).toBeInstanceOf(BodyError);
    expect(keys).toEqual([]);
  });
});

describe("a service that no connection reaches", () => {
  it("is given up after two tries when no connection has ever worked, and says so before the second", async () => {
    const { api, client, notices } = open("http://127.0.0.1:9");
    const error = await errorOf(api.count(ALL));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toBe(
      "Cannot count people at 127.0.0.1:9: the connection was refused (ECONNREFUSED). Check base_url and whether the service is up",
    );
    expect(client.usage).toMatchObject({ requests: 2, retries: 1, bytesReceived: 0 });
    expect(notices).toEqual([
      {
        kind: "retrying",
        what: "count people at 127.0.0.1:9",
        reason: "the connection was refused (ECONNREFUSED)",
        attempt: 2,
        attempts: 2,
        waitMs: 0,
      },
    ]);
  });

  it("is tried five times when a connection has worked before", async () => {
    let sockets = 0;
    const server = createServer((_, response) => response.end(list([], 3))).listen(0, "127.0.0.1");
    await once(server, "listening");
    server.on("connection", () => {
      sockets += 1;
    });
    const { api, client } = open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect((await api.count(ALL)).rows).toBe(3);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const error = await errorOf(api.count(ALL));
    expect(error).not.toBeInstanceOf(UnreachableError);
    expect(error).toBeInstanceOf(TransientError);
    expect(sockets).toBe(1);
    expect(client.usage.requests).toBe(1 + 5);
  });
});

describe("client.usage", () => {
  it("counts requests, retries, bytes as they arrived, and what was waited for", async () => {
    let requests = 0;
    const body = gzipSync(Buffer.from(list([], 3)));
    const url = await serve((_, response) => {
      requests += 1;
      if (requests === 1) response.writeHead(503, { "retry-after": "7" }).end("gone");
      else response.writeHead(200, { "content-encoding": "gzip" }).end(body);
    });
    const { api, client } = open(url);
    await api.count(ALL);
    expect(client.usage).toMatchObject({ requests: 2, retries: 1, bytesReceived: 4 + body.length });
    expect(client.usage.waitedMs).toBeGreaterThanOrEqual(7_000);
  });
});
