// Times whole processes, from a candidate's start to its exit, and says in tables of Markdown how they compare.
import { spawn } from "node:child_process";
import { basename } from "node:path";

const USAGE = new URL("./usage.js", import.meta.url).href;

/**
 * One run of a command, its output read through a pipe as it comes. Node tells its processor time and its peak memory at its
 * exit. `tells`: false where telling would cost more than what is measured.
 */
export async function measure([program, ...args], tells = true) {
  const isNode = tells && basename(program) === "node";
  const began = process.hrtime.bigint();
  const stdio = ["ignore", "pipe", "pipe", "pipe"];
  const child = spawn(program, isNode ? ["--import", USAGE, ...args] : args, { stdio });
  let [bytes, complaint, usage] = [0, "", "{}"];
  child.stdout.on("data", (chunk) => {
    bytes += chunk.length;
  });
  child.stderr.on("data", (chunk) => {
    complaint = `${complaint}${chunk}`.slice(-2000);
  });
  child.stdio[3].on("data", (text) => {
    usage = text;
  });
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
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
 * What candidates took, and how much of it by the first one: the median of the pairs, the least and the most. Ratios mean
 * something on any machine. `rows`: how many rows each of them passed on.
 */
export function resultsTable(results, rows) {
  const [first] = results;
  const lines = results.map(({ name, goal = "", runs }) => {
    const middle = (of, digits) => (of(runs[0]) === undefined ? "" : median(runs.map(of)).toFixed(digits));
    const speed = rows && Math.round(rows / median(runs.map(seconds)) / 1000).toLocaleString("en");
    const times = [seconds, cpu].map((of) => [middle(of, 2), ratioOf(runs, first.runs, of)]);
    return [name, goal, ...times.flat(), middle(peak, 0), ...(rows ? [speed] : [])];
  });
  const head = ["program", "to reach", "seconds", "by the first", "processor s", "by the first", "peak MiB"];
  return table([...head, ...(rows ? ["1,000 rows/s"] : [])], lines, 2);
}

const seconds = (run) => run.seconds;
const cpu = (run) => run.cpu;
const peak = ({ peakMiB }) => peakMiB;

/** The ratio of two candidates, pair by pair. */
function ratioOf(above, below, of) {
  if (of(above[0]) === undefined || of(below[0]) === undefined) return "";
  const ratios = above.map((run, turn) => of(run) / of(below[turn]));
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
