import { once } from "node:events";
import type { RequestListener } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { BodyError } from "../../../src/base/errors.ts";
import type { Service } from "../../../src/sync/service.ts";
import { listOf, serve } from "../../support/serve.ts";
import { errorOf, holdTimers, type Opened, openSession } from "../../support/session.ts";

const ALL = { kind: "all" } as const;

/** A run's dealings with a service that gives these answers. */
const open = async (answer: RequestListener, idle = 30): Promise<Opened> =>
  openSession((await serve(answer)).url, { idle });

/** The keys of the rows that an export hands on, and what ends it. */
async function readKeys(api: Service): Promise<{ keys: readonly string[]; error: unknown }> {
  const keys: string[] = [];
  try {
    for await (const rows of api.stream(ALL)) keys.push(...rows.map(({ key }) => key));
    return { keys, error: undefined };
  } catch (error) {
    return { keys, error };
  }
}

describe("an export", () => {
  it.each(["\n", " \n", "garbage\n", "{}\n", ""])(
    "ends if no row comes while rows are wanted, but %j",
    async (line) => {
      const { api } = await open((_, response) => {
        response.write('{"id":"1"}\n');
        const timer = setInterval(() => response.write(line), 5);
        response.on("close", () => clearInterval(timer));
      }, 0.1);
      const { keys, error } = await readKeys(api);
      expect(error).toBeInstanceOf(BodyError);
      expect(String(error)).toContain("0.1 s");
      expect(keys).toEqual(['"1"']);
    },
  );

  it("is waited for while its own reader is slow", async () => {
    const line = `{"id":"${"x".repeat(1_000)}"}\n`;
    const rows = 10_000;
    const { api } = await open(async (_, response) => {
      for (let row = 0; row < rows; row += 100)
        if (!response.write(line.repeat(100))) await once(response, "drain");
      response.end();
    }, 5);
    holdTimers();
    let read = 0;
    for await (const batch of api.stream(ALL)) {
      read += batch.length;
      vi.advanceTimersByTime(12_000);
    }
    expect(read).toBe(rows);
  });

  /** The cuts of a body that some clients take for its end. Of the first two no transport can tell: the count must. */
  const CUTS = "close end close-gzip gzip-cut gzip-trailer fin length length-gzip length-reset midline reset";
  it.each(CUTS.split(" "))("that is cut by %s shows less than all", async (cut) => {
    const account = { people: 200, undated: 0 };
    const sandbox = await startSandbox({ ...account, faults: [`${cut}:after=100`] });
    onTestFinished(() => sandbox[Symbol.asyncDispose]());
    const { keys, error } = await readKeys(openSession(sandbox.url).api);
    expect(keys.length).toBeLessThan(cut === "gzip-trailer" ? 201 : 200);
    expect(error instanceof BodyError).toBe(cut !== "close" && cut !== "end");
  });
});

describe("an answer that is no export", () => {
  const packed = (body: Buffer): Promise<Opened> =>
    open((_, response) => void response.writeHead(200, { "content-encoding": "x-gzip" }).end(body));

  it("is read no further than 32 MiB of it, decompressed, and is not asked for again", async () => {
    const member = gzipSync(Buffer.alloc(1024 * 1024, 32));
    const { api, client } = await packed(Buffer.concat(Array(40).fill(member)));
    expect(await errorOf(api.count(ALL))).toMatchObject({
      name: "DataError",
      message: expect.stringContaining("32 MiB"),
    });
    expect(client.usage.requests).toBe(1);
    const small = await packed(Buffer.concat([member, member, gzipSync(listOf(1))]));
    expect((await small.api.count(ALL)).rows).toBe(1);
  });
});
