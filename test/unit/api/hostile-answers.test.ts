import { createServer, type RequestListener } from "node:http";
import { createServer as createSocketServer } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { BodyError, DataError, TransientError, UnreachableError } from "../../../src/errors.ts";
import type { StreamApi } from "../../../src/streams/stream-api.ts";
import { listen, listOf, serve } from "../../support/serve.ts";
import { errorOf, type Opened, openSession } from "../../support/session.ts";

const ALL = { kind: "all" } as const;

/** A run's dealings with a service that gives these answers. */
const open = async (answer: RequestListener, idle = 30): Promise<Opened> =>
  openSession((await serve(answer)).url, { idle });

/** The same where each answer is these bytes, which are said to be encoded so. */
const openEncoded = (body: Buffer | string, encoding = "gzip", idle = 30): Promise<Opened> =>
  open((_, response) => void response.writeHead(200, { "content-encoding": encoding }).end(body), idle);

/** The keys of the rows that an export hands on, and what ends it. */
async function readKeys(api: StreamApi): Promise<{ keys: readonly string[]; error: Error }> {
  const keys: string[] = [];
  const read = async (): Promise<void> => {
    for await (const { rows } of api.stream(ALL)) keys.push(...rows.map(({ key }) => key));
  };
  const error = await errorOf(read());
  return { keys, error };
}

describe("an answer that is no export", () => {
  it("is read no further than 32 MiB of it, decompressed, and is not asked for again", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 32));
    const { api, client } = await openEncoded(bomb);
    const error = await errorOf(api.count(ALL));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain("longer than 32 MiB");
    expect(client.usage.requests).toBe(1);
  });

  it("may come in many gzip members, which count together", async () => {
    const member = gzipSync(Buffer.alloc(1024 * 1024, 32));
    const end = gzipSync(Buffer.from(listOf(1)));
    const small = await openEncoded(Buffer.concat([member, member, end]), "x-gzip");
    expect((await small.api.count(ALL)).rows).toBe(1);
    const large = await openEncoded(Buffer.concat(Array(40).fill(member)));
    expect((await errorOf(large.api.count(ALL))).message).toContain("longer than 32 MiB");
  });

  it.each(["GZIP", " Gzip", "x-gzip", "X-GZIP"])("may be encoded as %j", async (encoding) => {
    const { api } = await openEncoded(gzipSync(Buffer.from(listOf(7))), encoding);
    expect((await api.count(ALL)).rows).toBe(7);
  });

  it("may not be encoded as was not asked for", async () => {
    const { api } = await openEncoded("x", "br");
    const error = await errorOf(api.count(ALL));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain('encoded as "br"');
    expect((await readKeys(api)).error).toBeInstanceOf(DataError);
  });

  it("has a deadline, however steadily its bytes drip", async () => {
    const { api } = await open((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const timer = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(timer));
    }, 0.1);
    const error = await errorOf(api.count(ALL));
    expect(error).toBeInstanceOf(TransientError);
    expect(error.message).toContain("did not end in time");
  });

  it("has a deadline before its headers too, however many other heads come first", async () => {
    const server = createSocketServer((socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 20);
      socket.on("error", () => undefined).on("close", () => clearInterval(timer));
    });
    const { api } = openSession(`http://127.0.0.1:${await listen(server)}`, { idle: 0.1 });
    expect((await errorOf(api.count(ALL))).message).toMatch(/in time/);
    expect((await readKeys(api)).error.message).toMatch(/in time/);
  });

  it("holds no more elements than a page can", async () => {
    const { api } = await open((_, response) => {
      response.end(`{"success":true,"data":[${"0,".repeat(1_000_000)}0],"pagination":{"total":5}}`);
    }, 5);
    const error = await errorOf(api.page(ALL, 1));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toContain("100,000");
  });

  it("keeps the digits of its integers, and holds a U+FFFD for a byte that is not UTF-8", async () => {
    const { api } = await open((_, response) => {
      const page = `{"success":true,"data":[{ "id": "1",\n"n": 12345678901234567890, "x":"\xff" }],"pagination":{"total":1}}`;
      response.end(Buffer.from(page, "latin1"));
    });
    const { rows } = await api.page(ALL, 1);
    expect(rows.map(({ raw }) => Buffer.from(raw, "latin1").toString("utf8"))).toEqual([
      '{"id":"1","n":12345678901234567890,"x":"\ufffd"}',
    ]);
  });

  it("is not JSON if it is nested too deep", async () => {
    const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
    const { api } = await open((_, response) => {
      response.end(`{"success":true,"data":[{"id":"1","x":${deep}}],"pagination":{"total":1}}`);
    });
    expect((await errorOf(api.page(ALL, 1))).message).toContain("is not JSON");
  });
});

describe("an export", () => {
  it.each(["\n", " \n", "garbage\n", "{}\n"])(
    "ends if no row comes while rows are wanted, but %j",
    async (line) => {
      const { api } = await open((_, response) => {
        response.write('{"id":"1"}\n');
        const timer = setInterval(() => response.write(line), 10);
        response.on("close", () => clearInterval(timer));
      }, 0.2);
      const { keys, error } = await readKeys(api);
      expect(error).toBeInstanceOf(BodyError);
      expect(error.message).toContain("no row came for 0.2 s");
      expect(keys).toEqual(['"1"']);
    },
  );

  it("hands on every row that is one, and then says what was none", async () => {
    const deep = `{"id":"4","x":${'{"x":'.repeat(2_000)}1${"}".repeat(2_001)}`;
    const { api } = await open((_, response) => {
      response.end(`{"id":"1"}\nnonsense\n{"id":"2"}\n{"name":"x"}\n{"id":"3"}\n${deep}\n`);
    });
    const { keys, error } = await readKeys(api);
    expect(error).toBeInstanceOf(BodyError);
    expect(error.message).toMatch(/line 2 \(8 bytes, sha256 [0-9a-f]{16}…\) is no JSON object/);
    expect(keys).toEqual(['"1"', '"2"', "", '"3"']);
  });

  it("hands on the rows before a cut", async () => {
    const { api } = await open((_, response) => {
      response.write('{"id":"1"}\n{"id":"2"}\n', () => setImmediate(() => response.destroy()));
    });
    const { keys, error } = await readKeys(api);
    expect(error).toBeInstanceOf(BodyError);
    expect(keys).toEqual(['"1"', '"2"']);
  });

  it.each([
    [1_000, ['"1"']],
    [1_001, []],
  ])("is read on after %i lines that are no rows as far as %j, a thousand at most", async (bad, read) => {
    const { api } = await open((_, response) => {
      response.end(`${"<p>\n".repeat(bad)}{"id":"1"}\n`);
    });
    const { keys, error } = await readKeys(api);
    expect(error).toBeInstanceOf(BodyError);
    expect(keys).toEqual(read);
  });
});

describe("a service that no connection reaches", () => {
  it("is given up after two tries when no connection has ever worked, and says so before the second", async () => {
    const { api, client, notices } = openSession("http://127.0.0.1:9");
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
    const server = createServer((_, response) => response.end(listOf(3)));
    let sockets = 0;
    server.on("connection", () => {
      sockets += 1;
    });
    const { api, client } = openSession(`http://127.0.0.1:${await listen(server)}`);
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
    const body = gzipSync(Buffer.from(listOf(3)));
    let isUp = false;
    const { api, client } = await open((_, response) => {
      if (isUp) response.writeHead(200, { "content-encoding": "gzip" }).end(body);
      else response.writeHead(503, { "retry-after": "7" }).end("gone");
      isUp = true;
    });
    await api.count(ALL);
    expect(client.usage).toMatchObject({ requests: 2, retries: 1, bytesReceived: 4 + body.length });
    expect(client.usage.waitedMs).toBeGreaterThanOrEqual(7_000);
  });
});
