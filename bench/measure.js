// Times whole processes: a candidate's start to its exit, its output read through a pipe as it comes.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const USAGE = new URL("./usage.js", import.meta.url).href;

/**
 * One run. `command`: a program and its arguments. Node tells its own use of the processor and its peak memory at its
 * exit; of other programs the kernel's record is read while they run, where there is one. `tells`: false where having
 * Node tell would cost more than what is measured.
 */
export async function measure([program, ...args], tells = true, ends = [0]) {
  const isNode = tells && basename(program) === "node";
  const began = process.hrtime.bigint();
  const child = spawn(program, isNode ? ["--import", USAGE, ...args] : args, {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  let complaint = "";
  child.stderr.on("data", (chunk) => {
    complaint = `${complaint}${chunk}`.slice(-2000);
  });
  const run = { seconds: 0, cpu: undefined, peakMiB: undefined, bytes: 0 };
  child.stdout.on("data", (chunk) => {
    run.bytes += chunk.length;
  });
  let usage = "";
  child.stdio[3].on("data", (chunk) => {
    usage += chunk;
  });
  const watch =
    isNode || program === "bash" ? undefined : setInterval(() => Object.assign(run, recordOf(child.pid)), 20);
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  clearInterval(watch);
  run.seconds = Number(process.hrtime.bigint() - began) / 1e9;
  if (!ends.includes(code)) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${complaint}`);
  return isNode ? { ...run, ...JSON.parse(usage) } : run;
}

/** What Linux knows of a running process; nothing elsewhere. */
function recordOf(pid) {
  try {
    const [, rest] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
    const fields = rest.split(" ");
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    if (peak === undefined) return {};
    return { cpu: (Number(fields[11]) + Number(fields[12])) / 100, peakMiB: Number(peak) / 1024 };
  } catch {
    return {};
  }
}

/** Runs candidates in turn (`command`: a command, or what makes one for each run), so that a machine whose speed drifts is the same to all of them. The first turn is not counted. */
export const takeTurns = (candidates, runs, said, tells = true) =>
  inTurns(candidates, runs, said, (candidate) => once(candidate, tells));

/**
 * As `takeTurns`, but each candidate runs at the same moment as the first, so that a machine whose speed drifts within seconds
 * is the same to both; one that is `alone` by itself. A run's `beside` is that of the first.
 */
export async function takePairs([first, ...others], runs, said) {
  const results = await inTurns(others, runs, said, async (candidate) => {
    if (candidate.alone) return await once(candidate);
    const [run, beside] = await Promise.all([once(candidate), once(first)]);
    return { ...run, beside };
  });
  const besides = [...results.values()].flat().flatMap(({ beside }) => beside ?? []);
  return results.set(
    first.name,
    besides.map((run) => ({ ...run, beside: run })),
  );
}

async function inTurns(candidates, runs, said, take) {
  const results = new Map(candidates.map(({ name }) => [name, []]));
  for (let turn = 0; turn <= runs; turn++) {
    for (const candidate of candidates) {
      const run = await take(candidate);
      if (turn > 0) results.get(candidate.name).push(run);
      said(`${turn === 0 ? "warm-up" : `${turn}/${runs}`} ${candidate.name}: ${run.seconds.toFixed(2)} s`);
    }
  }
  return results;
}

const once = ({ command }, tells) => measure(typeof command === "function" ? command() : command, tells);

export function median(values) {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The ratio of two candidates, pair by pair: its median, least and most. */
export function ratio(above, below, of) {
  const ratios = above.map((run, turn) => of(run) / of(below[turn]));
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}
