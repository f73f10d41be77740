// Throws hostile configs, catalogs, states, answers and lines at the connector. A failure names its seed, which plays it
// again: `npm run fuzz -- --target lines --seed 123`. See docs/security.md. A second process plays, so that a case that
// kills it, or never comes back, is a failure with a seed as well; the run then goes on without it.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { importSource } from "./import-source.js";

/** The slowest case takes seconds. */
const HUNG_MS = 300_000;
const args = process.argv.slice(2);

if (process.send === undefined) process.exitCode = await watchOver();
else await importSource("test/lab/fuzz/child.ts");

/** Returns the exit code. */
async function watchOver() {
  const began = Date.now();
  const at = args.indexOf("--minutes") + 1;
  let figures = { units: {}, failures: 0 };
  for (;;) {
    const minutes = Number(args[at]) - (Date.now() - began) / 60_000;
    const left = at === 0 || figures.failures === 0 ? args : args.with(at, String(Math.max(0.01, minutes)));
    const { code, signal, playing } = await playIn([...left, "--earlier", JSON.stringify(figures)]);
    if (playing === undefined || (signal === null && code !== null && code < 3)) return code ?? 1;
    const { target, seed } = playing;
    console.log(`KILLED the process (${signal ?? code}): npm run fuzz -- --target ${target} --seed ${seed}`);
    if (at === 0) return 1;
    figures = { ...playing.figures, failures: playing.figures.failures + 1 };
  }
}

function playIn(words) {
  return new Promise((resolve) => {
    let playing;
    const child = fork(fileURLToPath(import.meta.url), words);
    let timer = setTimeout(() => {}, 0);
    child.on("message", (message) => {
      playing = message;
      clearTimeout(timer);
      timer = setTimeout(() => child.kill("SIGKILL"), HUNG_MS);
    });
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, playing });
    });
  });
}
