import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { ConfigError } from "../base/errors.ts";
import type { Runtime } from "../run/runtime.ts";

/** Asks a person at a terminal, or reads the answers as lines where stdin is no terminal. */
export type Questions = {
  /** Whether a question can be asked again. */
  readonly isTerminal: boolean;
  ask(question: string): Promise<string>;
  /** Shows nothing of what is typed. */
  askSecret(question: string): Promise<string>;
  /** Whether the answer begins with y. */
  confirm(question: string): Promise<boolean>;
  close(): void;
};

/** stdin ended before all questions were answered. */
export class NoAnswer extends ConfigError {}

/** Questions are asked on stderr. Throws ConfigError without a stdin, or where the answers end too early. */
export function openQuestions({ stdin: openStdin, stderr, signal }: Runtime): Questions {
  if (openStdin === undefined) throw new ConfigError("Cannot ask for anything: there is no stdin");
  const stdin = openStdin();
  const isTerminal = stdin.isTTY === true;
  let isSecret = false;
  const echo = new Writable({
    write(chunk, _encoding, done) {
      if (isTerminal && !isSecret) stderr.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input: stdin, output: echo, terminal: isTerminal, historySize: 0, signal });
  const answers = lines[Symbol.asyncIterator]();
  // Lines that were read before stdin ended are still answers.
  let hasEnded = false;
  lines.once("close", () => {
    hasEnded = true;
  });

  const ask = async (question: string): Promise<string> => {
    if (isSecret) stderr.write(question);
    lines.setPrompt(question);
    if (!hasEnded) lines.prompt();
    const { value, done } = await answers.next();
    signal.throwIfAborted();
    if (done === true) {
      throw new NoAnswer("Cannot go on: stdin ended before all was answered. No file was written");
    }
    return value.trim();
  };
  return {
    isTerminal,
    ask,
    async askSecret(question) {
      isSecret = isTerminal;
      const answer = await ask(question);
      isSecret = false;
      if (isTerminal) stderr.write("\n");
      return answer;
    },
    confirm: async (question) => /^y/i.test(await ask(question)),
    close: () => lines.close(),
  };
}
