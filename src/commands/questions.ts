import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { ConfigError } from "../base/errors.ts";
import type { Runtime } from "../run/runtime.ts";

/** Questions to a person. If stdin is not a terminal, its lines are the answers. */
export type Questions = {
  /** Whether a question can be asked again. */
  readonly isTerminal: boolean;
  /** @param isSecret whether typed characters are hidden */
  ask(question: string, isSecret?: boolean): Promise<string>;
  close(): void;
};

/** stdin ended before all questions were answered. */
export class NoAnswer extends ConfigError {}

/** Opens questions, which stderr shows. @throws ConfigError without stdin, or if the answers end too early */
export function openQuestions({ stdin: openStdin, stderr, signal }: Runtime): Questions {
  if (openStdin === undefined) throw new ConfigError("Cannot ask a question: there is no stdin");
  const stdin = openStdin();
  const isTerminal = stdin.isTTY === true;
  let isHidden = false;
  const echo = new Writable({
    write(chunk, _encoding, done) {
      if (isTerminal && !isHidden) stderr.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input: stdin, output: echo, terminal: isTerminal, historySize: 0, signal });
  const answers = lines[Symbol.asyncIterator]();
  // After the end of stdin, lines that were already read are still answers.
  let hasEnded = false;
  lines.once("close", () => {
    hasEnded = true;
  });

  const ask = async (question: string, isSecret = false): Promise<string> => {
    isHidden = isSecret && isTerminal;
    if (isHidden) stderr.write(question);
    lines.setPrompt(question);
    if (!hasEnded) lines.prompt();
    const { value, done } = await answers.next();
    if (isHidden) stderr.write("\n");
    isHidden = false;
    signal.throwIfAborted();
    if (done === true) {
      throw new NoAnswer("Cannot continue: stdin ended before the last question. No file was written");
    }
    return value.trim();
  };
  return { isTerminal, ask, close: () => lines.close() };
}
