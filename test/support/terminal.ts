import { Writable } from "node:stream";
import { systemClock } from "../../src/api/clock.ts";
import type { Runtime } from "../../src/run/runtime.ts";

/** What a terminal shows; it knows how to move its cursor. */
export class Terminal extends Writable {
  readonly isTTY = true;
  readonly columns = 120;
  text = "";
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
  cursorTo(): boolean {
    return true;
  }
  moveCursor(): boolean {
    return true;
  }
  clearLine(): boolean {
    return true;
  }
}

/** What a process would hand to a command, with two terminals and no environment unless said otherwise. */
export const testProcess = (changes: Partial<Runtime> = {}): Runtime => ({
  clock: systemClock,
  signal: new AbortController().signal,
  environment: {},
  random: Math.random,
  pid: 1,
  stdout: new Terminal(),
  stderr: new Terminal(),
  ...changes,
});
