import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { NoAnswer, openQuestions } from "../../../src/run/questions.ts";
import { Kept } from "../../support/in-process.ts";
import { testProcess } from "../../support/terminal.ts";

/** Questions to somebody who types into `stdin`; `shown` is what stderr shows so far. */
function asked(isTTY: boolean) {
  const stdin = Object.assign(new PassThrough(), { isTTY });
  const stderr = new Kept();
  const stop = new AbortController();
  const questions = openQuestions(testProcess({ stdin: () => stdin, stderr, signal: stop.signal }));
  return { questions, stdin, stop, shown: () => stderr.text };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("openQuestions()", () => {
  it("shows what is typed at a terminal, but for a secret, and shows it again after that", async () => {
    const { questions, stdin, shown } = asked(true);
    const answer = async (question: Promise<string>, text: string) => {
      stdin.write(`${text}\r`);
      return await question;
    };
    expect(await answer(questions.ask("Address? "), " first ")).toBe("first");
    expect(await answer(questions.askSecret("Key? "), "hidden-key")).toBe("hidden-key");
    const beforeLast = shown();
    expect(beforeLast).toContain("Address? ");
    expect(beforeLast).toContain("first");
    expect(beforeLast.split("Key? ")).toHaveLength(2);
    expect(beforeLast.endsWith("\n")).toBe(true);
    expect(await answer(questions.ask("Day? "), "third")).toBe("third");
    expect(shown().slice(beforeLast.length)).toContain("third");
    expect(shown().slice(beforeLast.length)).toContain("Day? ");
    // The key that brings back what was typed before brings back nothing.
    expect(await answer(questions.ask("Town? "), "\u001b[A\u001b[A")).toBe("");
    expect(shown()).not.toContain("hidden");
    questions.close();
  });

  it("reads lines where stdin is no terminal, shows none of them, and says that it cannot ask again", async () => {
    const { questions, stdin, shown } = asked(false);
    stdin.end("one\n  two  \nYes, please\nno\nwhy\n");
    expect(questions.isTerminal).toBe(false);
    expect([await questions.ask("A? "), await questions.askSecret("B? ")]).toEqual(["one", "two"]);
    expect([
      await questions.confirm("C? "),
      await questions.confirm("D? "),
      await questions.confirm("E? "),
    ]).toEqual([true, false, false]);
    expect(shown()).toBe("");
    questions.close();
  });

  it("takes lines that came before stdin ended, and then says that the answers ended", async () => {
    const { questions, stdin } = asked(false);
    stdin.end("one\ntwo\n");
    expect(await questions.ask("A? ")).toBe("one");
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    expect(await questions.ask("B? ")).toBe("two");
    const error = await questions.ask("C? ").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NoAnswer);
    expect(error).toHaveProperty(
      "message",
      "Cannot go on: stdin ended before all was answered. No file was written",
    );
  });

  it("ends a question with the reason of a signal", async () => {
    const { questions, stop } = asked(true);
    const answer = questions.ask("A? ");
    stop.abort(new Error("SIGTERM"));
    await expect(answer).rejects.toThrow("SIGTERM");
  });

  it("does not listen for a signal once it is closed, and refuses to ask without stdin", () => {
    const { questions, stop } = asked(false);
    questions.close();
    stop.abort(new Error("SIGTERM"));
    expect(() => openQuestions({ ...testProcess(), stdin: undefined } as never)).toThrow(
      "Cannot ask for anything: there is no stdin",
    );
  });
});
