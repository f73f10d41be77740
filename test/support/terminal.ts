import { Writable } from "node:stream";
import { systemClock } from "../../src/base/clock.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { type Ended, run } from "./run.ts";

/** Keeps what is written to it, and says it in an encoding. */
export class Kept extends Writable {
  readonly #chunks: Buffer[] = [];
  readonly #encoding: BufferEncoding;

  constructor(encoding: BufferEncoding = "utf8") {
    super();
    this.#encoding = encoding;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString(this.#encoding);
  }
}

/** What is written to a terminal. */
export class Terminal extends Kept {
  readonly isTTY = true;
  readonly columns: number;

  constructor(columns = 120) {
    super();
    this.columns = columns;
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
/** Types each answer once a question stands at the end of what the terminal shows. */
const PTY = `
import os, pty, re, sys
answers = sys.argv[1].split("|") if sys.argv[1] else []
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.environ.pop("CI", None)
    os.execv(sys.argv[2], sys.argv[2:])
shown = b""
seen = 0
while True:
    try: chunk = os.read(terminal, 4096)
    except OSError: break
    if not chunk: break
    shown += chunk
    if answers and re.search(rb"[:)] (\\x1b\\[[0-9]+G)?$", shown[seen:]):
        seen = len(shown)
        os.write(terminal, answers.pop(0).encode() + b"\\r")
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

/** Runs a program of ours at a terminal, whose both outputs are what it shows. @param answers typed as they are asked for */
export async function atTerminal(
  words: readonly string[],
  answers: readonly string[] = [],
): Promise<Pick<Ended, "code"> & { readonly shown: string }> {
  const args = ["-c", PTY, answers.join("|"), process.execPath, ...words];
  const { code, stdout } = await run("python3", args, { killAfterMs: 60_000 });
  return { code, shown: stdout.replaceAll("\r", "") };
}
