// Everything slow, at random: `npm run test:lab -- [--minutes M] [--seed S] [--only NAME]`. Without arguments: the tests named
// *.lab.test.ts, every fault once, then soak and fuzz for some minutes. NAME: tests, faults, soak, fuzz, an input of the fuzz,
// or a part of the name of a fault. A second process plays, so that a case that kills it, or never comes back, has a seed too.
import { fork, spawnSync } from "node:child_process";
import { importSource } from "./import-source.js";

const HUNG_MS = 300_000;
/** The exit code of a player that found broken promises. After an uncaught error the code is 1. */
const FAILED = 3;
const args = process.argv.slice(2);

if (process.send !== undefined) {
  await importSource("test/lab/main.ts");
  process.disconnect();
} else {
  const only = args[args.indexOf("--only") + 1];
  const isOnly = args.includes("--only");
  const isTests = isOnly && only === "tests";
  // The tests take minutes of their own.
  const failed = isTests || !(isOnly || args.includes("--minutes")) ? runTests() : 0;
  process.exitCode = (isTests ? 0 : await play()) || failed;
}

function runTests() {
  const vitest = `${import.meta.dirname}/../node_modules/vitest/vitest.mjs`;
  const words = [vitest, "run", "--project", "lab", "--passWithNoTests"];
  return spawnSync(process.execPath, words, { stdio: "inherit" }).status ?? 1;
}

/** Returns the exit code. */
function play() {
  return new Promise((resolve) => {
    const child = fork(import.meta.filename, args);
    let [playing, timer] = [[], undefined];
    child.on("message", (message) => {
      playing = message;
      clearTimeout(timer);
      timer = setTimeout(() => child.kill("SIGKILL"), HUNG_MS);
    });
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      const [name, seed] = playing;
      const isKilled = code !== 0 && code !== FAILED && name !== undefined;
      if (isKilled)
        console.log(`KILLED (${signal ?? code}): npm run test:lab -- --only "${name}" --seed ${seed}`);
      resolve(signal === null && code === 0 ? 0 : 1);
    });
  });
}
