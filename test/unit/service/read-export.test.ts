import { PassThrough, Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { BodyError, ScrambledError } from "../../../src/base/errors.ts";
import { readExport } from "../../../src/service/read-export.ts";
import type { RowNotes } from "../../../src/service/row-notes.ts";
import { RowParser } from "../../../src/service/rows.ts";
import { noUsage } from "../../../src/service/usage.ts";
import type { Batch, Row } from "../../../src/sync/service.ts";
import { runs } from "../../support/runs.ts";
import { holdTimers } from "../../support/session.ts";

const parser = (): RowParser => new RowParser({ key: "id", cursor: "discoveredAt", schema: null });

const GZIP = { "content-encoding": "gzip" };

/** The batches of a body. */
const batchesOf = (body: Readable, gzipped = false, by = parser()): AsyncGenerator<Batch> =>
  readExport(
    async () => ({ body, headers: gzipped ? GZIP : {}, idleMs: 60_000, usage: noUsage() }),
    by,
    "read people",
  );

type Read = { rows: Row[]; texts: string[]; notes: RowNotes };

async function read(chunks: Readable | readonly Buffer[], gzipped = false): Promise<Read> {
  const by = parser();
  const rows: Row[] = [];
  const body = chunks instanceof Readable ? chunks : Readable.from(chunks, { objectMode: false });
  for await (const batch of batchesOf(body, gzipped, by)) rows.push(...batch);
  return { rows, texts: rows.map(({ raw }) => Buffer.from(raw, "latin1").toString("utf8")), notes: by.notes };
}

const readText = (text: string): Promise<Read> => read([Buffer.from(text, "utf8")]);

const bytes = (text: string): Buffer => Buffer.from(text, "utf8");

/** The same bytes, cut where the numbers say. */
function cutAt(whole: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  const edges = [0, ...sorted, whole.length];
  return edges.slice(1).map((end, nth) => whole.subarray(edges[nth], end));
}

const PLACES = fc.array(fc.nat(), { maxLength: 12 });
const UNICODE = fc.string({ unit: "binary" });

/** JSON text of an object as a service may spell it: odd numbers, odd spacing, keys in any order. */
const OBJECT = fc
  .record({
    id: fc.string({ minLength: 1, unit: "grapheme" }),
    fields: fc.dictionary(UNICODE, fc.jsonValue({ depthSize: "small", stringUnit: "binary" }), {
      maxKeys: 4,
    }),
    big: fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }),
    number: fc.constantFrom("1.0", "1e5", "-0", "0.10", "12345678901234567890.5"),
    space: fc.constantFrom("", " ", "\t"),
  })
  .map(({ id, fields, big, number, space }) => {
    const rest = Object.entries(fields)
      .filter(
        ([name]) => name !== "id" && name !== "success" && name !== "discoveredAt" && name !== "__proto__",
      )
      .map(([name, value]) => `,${space}${JSON.stringify(name)}:${JSON.stringify(value)}`);
    return `{${space}"big":${big},"number":${number},"id":${JSON.stringify(id)}${rest.join("")}${space}}`;
  });

/** What may change in a line: three characters are escaped, halves of surrogate pairs replaced. */
const asPromised = (text: string): string =>
  text
    .replaceAll("\u2028", "\\u2028")
    .replaceAll("\u2029", "\\u2029")
    .replaceAll("\u0085", "\\u0085")
    .replace(/\\\\|\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g, (found) => (found === "\\\\" ? found : "\\ufffd"));

describe("readExport()", () => {
  it("sends any object unchanged, for any text and any cut of its bytes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(OBJECT, { maxLength: 6 }),
        PLACES,
        fc.boolean(),
        async (lines, places, gzipped) => {
          const whole = bytes(lines.map((line) => `${line}\n`).join(""));
          const sent = gzipped ? gzipSync(whole) : whole;
          const { texts } = await read(cutAt(sent, places), gzipped);
          expect(texts).toEqual(lines.map(asPromised));
        },
      ),
      { numRuns: runs(100, 300) },
    );
  });

  it.each([
    ["CR LF", '{"id":"1"}\r\n{"id":"2"}\r\n'],
    ["a byte order mark", '\ufeff{"id":"1"}\n{"id":"2"}\n'],
    ["blank lines", '\n{"id":"1"}\n\n  \n{"id":"2"}\n\n'],
    ["no last line feed", '{"id":"1"}\n{"id":"2"}'],
  ])("takes %s", async (_, text) => {
    for (let place = 0; place <= bytes(text).length; place++) {
      expect((await read(cutAt(bytes(text), [place]))).texts).toEqual(['{"id":"1"}', '{"id":"2"}']);
    }
  });

  it.each([
    [String.raw`\uDE00`, String.raw`\ufffd`, 1],
    [String.raw`\\ud83d`, String.raw`\\ud83d`, 0],
    [String.raw`\\\ud83d`, String.raw`\\\ufffd`, 1],
    [String.raw`\ud83d\ud83d\ude00`, String.raw`\ufffd\ud83d\ude00`, 1],
    [String.raw`\ude00\ud83d`, String.raw`\ufffd\ufffd`, 2],
    ["a\u2028b\u2029c\u0085d\u00a0", String.raw`a\u2028b\u2029c\u0085d`.concat("\u00a0"), 0],
  ])("writes %s as %s", async (given, written, replaced) => {
    const whole = bytes(`{"id":"1","a":"${given}"}\n{"id":"2"}\n`);
    for (let place = 0; place <= whole.length; place++) {
      const { texts, notes } = await read(cutAt(whole, [place]));
      expect(texts).toEqual([`{"id":"1","a":"${written}"}`, '{"id":"2"}']);
      expect(notes.replaced).toBe(replaced);
    }
  });

  it.each([
    ["no JSON", "secret-row"],
    ["an array", '["secret-row"]'],
    ["a torn object", '{"id":"secret-row","na'],
    ["the error line", '{"success":false,"error":{"code":"STREAM_FAILED","message":"secret-row"}}'],
    ["another error line", '{"success":false,"error":{"code":"odd code","message":"secret-row"}}'],
  ])("refuses %s, first, in the middle or last", async (_, line) => {
    for (const text of [
      `${line}\n{"id":"1"}\n`,
      `{"id":"1"}\n${line}\n{"id":"2"}\n`,
      `{"id":"1"}\n${line}`,
    ]) {
      const error = await readText(text).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(BodyError);
      expect(String(error)).not.toContain("secret");
    }
  });

  it.each([
    ["latin1", Buffer.from('caf\xe9"}\n', "latin1")],
    ["an overlong form", Buffer.from('\xc0\xaf"}\n', "latin1")],
    ["a surrogate", Buffer.from('\xed\xa0\x80"}\n', "latin1")],
    ["a character that the end cuts", Buffer.from([0xe2, 0x80])],
  ])("refuses %s", async (_, bad) => {
    const whole = Buffer.concat([bytes('{"id":"1"}\n{"id":"'), bad]);
    for (let place = 0; place <= whole.length; place++) {
      await expect(read(cutAt(whole, [place]))).rejects.toThrow(BodyError);
    }
  });

  it("refuses what follows gzip, and says nothing against the rows before it", async () => {
    const sent = [gzipSync(bytes('{"id":"1"}\n')), bytes("proxy")];
    for (const chunks of [sent, [Buffer.concat(sent)]]) {
      await expect(read(chunks, true)).rejects.toThrow(BodyError);
      await expect(read(chunks, true)).rejects.not.toThrow(ScrambledError);
    }
  });

  it("refuses gzip with a wrong checksum and reads all members", async () => {
    const sent = gzipSync(bytes('{"id":"1"}\n'));
    const broken = Buffer.from(sent);
    broken[broken.length - 8] = (broken[broken.length - 8] ?? 0) ^ 1;
    await expect(read([broken], true)).rejects.toThrow(ScrambledError);
    await expect(read([sent.subarray(0, -1)], true)).rejects.not.toThrow(ScrambledError);
    const two = Buffer.concat([sent, gzipSync(bytes('{"id":"2"}\n'))]);
    expect((await read([two], true)).rows).toHaveLength(2);
  });

  it.each([
    ["a right", 0, BodyError],
    ["a wrong", 1, ScrambledError],
  ])("reads past a line that is not UTF-8, up to %s check sum", async (_, bit, Failure) => {
    const sent = gzipSync(Buffer.from('{"id":"1"}\n{"id":"caf\xe9"}\n{"id":"3"}\n', "latin1"));
    sent[sent.length - 8] = (sent[sent.length - 8] ?? 0) ^ bit;
    const error = await read([sent], true).catch((thrown: unknown) => thrown);
    expect((error as Error).constructor).toBe(Failure);
  });

  it("passes on the rows around a line that is not UTF-8", async () => {
    const body = Readable.from([Buffer.from('{"id":"1"}\n{"id":"caf\xe9"}\n{"id":"3"}\n', "latin1")]);
    const rows: string[] = [];
    const reads = async (): Promise<void> => {
      for await (const batch of batchesOf(body)) rows.push(...batch.map(({ raw }) => raw));
    };
    await expect(reads()).rejects.toThrow("line 2 (13 bytes) is not a JSON object");
    expect(rows).toEqual(['{"id":"1"}', '{"id":"3"}']);
  });

  it("waits for the next row as long as the idle timeout, also after a row that waits for its batch", async () => {
    holdTimers();
    const body = new PassThrough();
    const batches = batchesOf(body);
    const write = async (text: string): Promise<void> => {
      body.write(text);
      for (let turn = 0; turn < 20; turn++) await setImmediate();
    };
    const first = batches.next();
    await write('{"id":"1"}\n');
    expect((await first).value).toHaveLength(1);
    const second = batches.next();
    vi.advanceTimersByTime(900);
    await write('{"id":"2"}\n');
    vi.advanceTimersByTime(59_999);
    await write('{"id":"3"}\n');
    expect((await second).value).toHaveLength(2);
    const third = batches.next();
    vi.advanceTimersByTime(62_000);
    await expect(third).rejects.toThrow("no row arrived for 60 s");
  });

  it("refuses a line without an end before it eats the memory", async () => {
    const chunk = Buffer.alloc(256 * 1024, "x");
    let sent = 0;
    const chunks = function* (): Generator<Buffer> {
      yield bytes('{"id":"1"}\n{"id":"');
      for (; sent < 64 * 1024 * 1024; sent += chunk.length) yield chunk;
    };
    await expect(read(Readable.from(chunks(), { objectMode: false }))).rejects.toThrow("longer than 16 MiB");
    expect(sent).toBeLessThan(20 * 1024 * 1024);
  });

  it.each([
    ['{"id":-1.5}', "-1.5"],
    ['{"x":"id","y":{"id":5},"id":9007199254740993,"z":[{"id":7}]}', "9007199254740993"],
    ['{"id":"\\u00e9"}', '"\xc3\xa9"'],
    ['{"id":"é"}', '"\xc3\xa9"'],
    ['{"id":"\\ud83d\\ude00"}', '"\xf0\x9f\x98\x80"'],
    ['{"id":"a\\"b"}', '"a\\"b"'],
  ])("takes the key of %s as JSON", async (line, key) => {
    const { rows } = await readText(`${line}\n`);
    expect(rows.map((row) => row.key)).toEqual([key]);
  });
});
