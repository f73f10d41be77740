import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { Writable } from "node:stream";

/** Returns a stream for a file that completes short writes, which Node does not do. Returns other streams unchanged. */
export function wholeOutput<Stream extends Writable & { readonly fd: number }>(stream: Stream) {
  const { fd } = stream;
  if (!isFile(fd)) return stream;
  let begins = true;
  return new Writable({
    write: (bytes: Buffer, _, done) => {
      try {
        if (begins && lastByte(fd) !== "\n") writeSync(fd, "\n");
        begins = false;
        for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

function isFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false;
  }
}

/** The last byte of a file that is open for writing; a line feed if the file is empty or not readable. */
function lastByte(fd: number): string {
  let reading: number | undefined;
  try {
    reading = openSync(`/dev/fd/${fd}`, "r");
    const byte = Buffer.from("\n");
    readSync(reading, byte, 0, 1, fstatSync(fd).size - 1);
    return byte.toString("latin1");
  } catch {
    return "\n";
  } finally {
    if (reading !== undefined) closeSync(reading);
  }
}
