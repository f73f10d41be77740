import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from "node:fs";
import { Writable } from "node:stream";

const LINE_FEED = 10;

/**
 * The stream itself, or one in its place where it is a file: Node takes a short write to a file, as on a disk that fills, for
 * a complete one. Whatever ends a write, the file holds whole lines, also behind a line that an earlier run left torn.
 */
export function wholeOutput<Stream extends Writable & { readonly fd: number }>(
  stream: Stream,
): Stream | Writable {
  const { fd } = stream;
  if (!isFile(fd)) return stream;
  let begins = true;
  return new Writable({
    write: (bytes: Buffer, _, done) => {
      try {
        if (begins && (lastBytes(fd, 1)[0] ?? LINE_FEED) !== LINE_FEED) writeSync(fd, "\n");
        begins = false;
        writeWhole(fd, bytes);
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

function writeWhole(fd: number, bytes: Buffer): void {
  let at = 0;
  try {
    while (at < bytes.length) at += writeSync(fd, bytes, at);
  } catch (error) {
    const torn = bytes.subarray(bytes.lastIndexOf(LINE_FEED, at - 1) + 1, at);
    // What another program has appended meanwhile stays, and so does a place in the file that others go on from.
    if (at > 0 && appends(fd) && lastBytes(fd, torn.length).equals(torn))
      ftruncateSync(fd, fstatSync(fd).size - torn.length);
    throw error;
  }
}

/** The last bytes of a file that may be open for writing alone; none where the system does not let them be read. */
function lastBytes(fd: number, count: number): Buffer {
  try {
    const reading = openSync(`/dev/fd/${fd}`, "r");
    try {
      const bytes = Buffer.alloc(count);
      return bytes.subarray(0, readSync(reading, bytes, 0, count, Math.max(0, fstatSync(fd).size - count)));
    } finally {
      closeSync(reading);
    }
  } catch {
    return Buffer.alloc(0);
  }
}

/** Whether a file is open for appending, as Linux tells. */
function appends(fd: number): boolean {
  try {
    const [, flags = "0"] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1")) ?? [];
    return (Number.parseInt(flags, 8) & constants.O_APPEND) !== 0;
  } catch {
    return false;
  }
}
