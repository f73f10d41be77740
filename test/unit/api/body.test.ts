import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { isGzipped, readBody } from "../../../src/api/body.ts";
import { CostScan } from "../../../src/api/cost-scan.ts";
import { noUsage } from "../../../src/api/usage.ts";
import { DataError } from "../../../src/errors.ts";

describe("isGzipped()", () => {
  it.each([
    [true, ["gzip", "GZIP", " Gzip ", "x-gzip", "X-GZIP"]],
    [false, ["", " ", "identity", "Identity", undefined]],
  ])("is %s of %j", (is, encodings) => {
    for (const encoding of encodings)
      expect(isGzipped("x", { "content-encoding": encoding }), encoding).toBe(is);
    if (!is) expect(isGzipped("x", {})).toBe(false);
  });

  it.each(["br", "gzip, gzip", "deflate", "a\u001b"])("refuses %j, which was not asked for", (encoding) => {
    const check = () => isGzipped("count people", { "content-encoding": encoding });
    expect(check).toThrow(DataError);
    const named = encoding.replace("\u001b", "\\u001b");
    expect(check).toThrow(
      `Cannot count people: the answer is encoded as "${named}", only gzip was asked for. ` +
        "Tell the owner of the service, or of the proxy before it",
    );
  });
});

/** Chunks as a body, which breaks off at the end if there is an error. */
function bodyOf(chunks: readonly Buffer[], error?: Error): Readable {
  return Readable.from(
    (async function* () {
      yield* chunks;
      if (error !== undefined) throw error;
    })(),
  );
}

describe("readBody()", () => {
  const chunks = ["0123", "456", "789"].map((text) => Buffer.from(text));
  const MEBIBYTE = 1_048_576;

  it("takes as many bytes as the limit, and not one more", async () => {
    const usage = noUsage();
    expect(String(await readBody("x", { body: bodyOf(chunks), headers: {} }, 10, usage))).toBe("0123456789");
    expect(usage).toEqual({ ...noUsage(), bytesReceived: 10 });
    const longer = readBody("count people", { body: bodyOf(chunks), headers: {} }, 9, usage);
    await expect(longer).rejects.toThrow(DataError);
    const large = Buffer.alloc(2 * MEBIBYTE + 1);
    await expect(
      readBody("count people", { body: bodyOf([large]), headers: {} }, 2 * MEBIBYTE, usage),
    ).rejects.toThrow(
      "Cannot count people: the answer is longer than 2 MiB, which no answer of this interface is. " +
        "Check the address, or tell the service's owner",
    );
  });

  it("measures what was decompressed, and counts what arrived", async () => {
    const packed = gzipSync("x".repeat(1_000));
    const read = (limit: number, usage = noUsage()) =>
      readBody("x", { body: bodyOf([packed]), headers: { "content-encoding": "gzip" } }, limit, usage);
    const usage = noUsage();
    expect(String(await read(1_000, usage))).toBe("x".repeat(1_000));
    expect(usage.bytesReceived).toBe(packed.length);
    await expect(read(999)).rejects.toThrow(DataError);
  });

  it("fails for a body that breaks off, or is damaged", async () => {
    const broken = readBody("x", { body: bodyOf(chunks, new Error("gone")), headers: {} }, 99, noUsage());
    await expect(broken).rejects.toThrow("gone");
    const headers = { "content-encoding": "gzip" };
    await expect(readBody("x", { body: bodyOf(chunks), headers }, 99, noUsage())).rejects.toThrow("header");
  });

  it("looks in a longer body for its cost, to its end or as far as it comes", async () => {
    const said = ["[", '{"credits_used":12,', '"x":', '1}, {"credits_used": 7}]'].map((text) =>
      Buffer.from(text),
    );
    const { length } = Buffer.concat(said);
    for (const error of [undefined, new Error("gone")]) {
      const [scan, usage] = [new CostScan(), noUsage()];
      const rest = await readBody("x", { body: bodyOf(said, error), headers: {} }, 3, usage, scan);
      expect([rest.length, scan.bytes, scan.credits, usage.bytesReceived]).toEqual([0, length, 12, length]);
    }
    const short = new CostScan();
    await readBody("x", { body: bodyOf(said), headers: {} }, length, noUsage(), short);
    expect([short.bytes, short.credits]).toEqual([0, null]);
    const cut = readBody("x", { body: bodyOf(said, new Error("gone")), headers: {} }, 99, noUsage(), short);
    await expect(cut).rejects.toThrow("gone");
  });

  it("reads no body of more than a GiB, whatever it may have cost", async () => {
    const sized = (length: number): Buffer =>
      Object.defineProperty(Buffer.alloc(0), "length", { value: length });
    const read = async (first: number, scan: CostScan): Promise<Buffer> =>
      await readBody(
        "x",
        { body: bodyOf([sized(first), ...chunks]), headers: {} },
        MEBIBYTE,
        noUsage(),
        scan,
      );
    const scan = new CostScan();
    expect(await read(1_073_741_824 - 10, scan)).toHaveLength(0);
    expect(scan.bytes).toBe(1_073_741_824);
    const longer = new CostScan();
    await read(1_073_741_824, longer);
    expect(longer.bytes).toBe(1_073_741_824);
    await expect(read(1_073_741_825, new CostScan())).rejects.toThrow("longer than 1 MiB");
  });
});
