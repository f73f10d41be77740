// Times whole processes, from a candidate's start to its exit, and says in tables of Markdown how they compare.
import { spawn } from "node:child_process";
import { basename } from "node:path";

const USAGE = new URL("./usage.js", import.meta.url).href;

/**
 * One run of a command, its output read through a pipe as it comes. Node tells its processor time and its peak memory at its
 * exit. `tells`: false where telling would cost more than what is measured. `read` may wait for a chunk's turn.
 */
export async function measure([program, ...args], tells = true, read = () => undefined) {
  const isNode = tells && basename(program) === "node";
  const began = process.hrtime.bigint();
  const stdio = ["ignore", "pipe", "pipe", "pipe"];
  const child = spawn(program, isNode ? ["--import", USAGE, ...args] : args, { stdio });
  let [bytes, complaint, usage] = [0, "", "{}"];
  const ended = new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  child.stderr.on("data", (chunk) => {
    complaint = `${complaint}${chunk}`.slice(-2000);
  });
  child.stdio[3].on("data", (text) => {
    usage = text;
  });
  for await (const chunk of child.stdout) {
    bytes += chunk.length;
    await read(chunk);
  }
  const code = await ended;
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${complaint}`);
  return { seconds, bytes, ...JSON.parse(usage) };
}

/**
 * Runs candidates in turn (`command`: a command, or what makes one for each run), so that a machine whose speed drifts is the
 * same to all of them. The first turn is not counted.
 */
export async function takeTurns(candidates, runs, tells = true) {
  const results = candidates.map((candidate) => ({ ...candidate, runs: [] }));
  for (let turn = 0; turn <= runs; turn++) {
    console.error(turn === 0 ? "warm-up" : `turn ${turn} of ${runs}`);
    for (const { command, runs } of results) {
      const run = await measure(typeof command === "function" ? command() : command, tells);
      if (turn > 0) runs.push(run);
    }
  }
  return results;
}

/** A table whose first columns (one, unless said otherwise) are texts. */
export function table(head, rows, texts = 1) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, nth) => (nth < texts ? "---" : "---:"));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

/**
 * The times of candidates, and their ratios to the first one: the median of the pairs, the least and the most. Ratios mean
 * something on any machine. `rows`: how many rows each of them passed on.
 */
export function resultsTable(results, rows) {
  const [first] = results;
  const lines = results.map(({ name, goal = "", runs }) => {
    const middle = (what) => median(runs.map((run) => run[what]));
    const shown = (what, digits) => (runs[0][what] === undefined ? "" : middle(what).toFixed(digits));
    const times = ["seconds", "cpu"].flatMap((what) => [shown(what, 2), ratioOf(runs, first.runs, what)]);
    const speed = rows ? [Math.round(rows / middle("seconds") / 1000).toLocaleString("en")] : [];
    return [name, goal, ...times, shown("peakMiB", 0), ...speed];
  });
  const head = ["program", "to reach", "seconds", "by the first", "processor s", "by the first", "peak MiB"];
  return table([...head, ...(rows ? ["1,000 rows/s"] : [])], lines, 2);
}

/** The ratio of two candidates, pair by pair. */
function ratioOf(above, below, what) {
  if (above[0][what] === undefined || below[0][what] === undefined) return "";
  const ratios = above.map((run, turn) => run[what] / below[turn][what]);
  const [middle, least, most] = [median(ratios), Math.min(...ratios), Math.max(...ratios)];
  return `**${middle.toFixed(2)}** (${least.toFixed(2)}–${most.toFixed(2)})`;
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function lineFeedsIn(chunk) {
  let count = 0;
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count += 1;
  return count;
}
