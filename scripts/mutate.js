// `npm run mutate [-- --count 250 --seed 1 --minutes 30 --only src/streams]`: makes single changes to a copy of the source,
// one at a time, and runs the tests that can notice each. Prints the survivors and the score. The seed chooses the changes.
// --quick leaves out the tests of the built program, which notice most of what run/ and commands/ do.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { mutationsOf } from "../test/mutation/rules.js";

const FOLDERS = ["streams", "api", "state", "catalog", "protocol", "jobs", "run"];
const MOST_MS = 300_000;
const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "250" },
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "600" },
    workers: { type: "string", default: "2" },
    only: { type: "string", default: "src/" },
    quick: { type: "boolean", default: false },
    report: { type: "string" },
  },
});
const equivalents = JSON.parse(readFileSync(join(root, "test/mutation/equivalent.json"), "utf8"));

/** A generator of numbers from 0 to 1 that a seed decides (mulberry32). */
function dice(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function shuffled(values, roll) {
  return values
    .map((value) => ({ value, at: roll() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

/** The files below the folders, and in each the changes that are not known to be equivalent. */
function candidates() {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, "src", folder))
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `src/${folder}/${name}`),
  );
  return files
    .filter((file) => file.includes(values.only))
    .flatMap((file) => {
      const source = readFileSync(join(root, file), "utf8");
      return mutationsOf(source).map((change) => ({ file, ...change }));
    });
}

const isEquivalent = ({ file, before, after }) =>
  equivalents.some((known) => known.file === file && known.before === before && known.after === after);

/** A copy of the repository that changes may break. */
function workshop(number) {
  const folder = join(root, ".cache", "mutation", String(number));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of [
    "src",
    "test",
    "schemas",
    "spec.json",
    "package.json",
    "tsconfig.json",
    "docs",
    "scripts",
    "README.md",
  ])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  return folder;
}

/** Whether vitest passes. A run that does not end is a run that fails. */
function passes(folder, words, env = {}) {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = [
    vitest,
    ...words,
    "--config",
    "test/mutation/vitest.config.ts",
    "--bail=1",
    "--passWithNoTests",
  ];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    stdio: "ignore",
    detached: true,
    env: { ...process.env, ...env },
  });
  const late = setTimeout(() => process.kill(-child.pid, "SIGKILL"), MOST_MS);
  return new Promise((resolve) =>
    child.on("close", (code) => {
      clearTimeout(late);
      resolve(code === 0);
    }),
  );
}

/** Tries a change: by the tests of its own file, by all that import it, and by those of the built program. */
async function survives(folder, { file, start, end, by }) {
  const source = readFileSync(join(folder, file), "utf8");
  writeFileSync(join(folder, file), source.slice(0, start) + by + source.slice(end));
  try {
    const twin = file.replace("src/", "test/").replace(".ts", ".test.ts");
    if (!(await passes(folder, ["run", twin])) || !(await passes(folder, ["related", "--run", file])))
      return false;
    if (values.quick || spawnSync(process.execPath, ["scripts/build.js"], { cwd: folder }).status !== 0)
      return values.quick;
    return await passes(folder, ["run"], { MUTATED_PROGRAM: "1" });
  } finally {
    writeFileSync(join(folder, file), source);
  }
}

const all = candidates();
const fresh = all.filter((change) => !isEquivalent(change));
const todo = shuffled(fresh, dice(Number(values.seed))).slice(0, Number(values.count));
const until = performance.now() + Number(values.minutes) * 60_000;
console.error(
  `${all.length} changes are possible, ${all.length - fresh.length} are equivalent, ${todo.length} are tried`,
);

const tried = [];
async function work(number) {
  const folder = workshop(number);
  if (number === 1 && !(await passes(folder, ["run"])))
    throw new Error("Cannot mutate: the tests fail before any change");
  for (let change = todo.shift(); change !== undefined && performance.now() < until; change = todo.shift()) {
    const survived = await survives(folder, change);
    tried.push({ ...change, survived });
    if (survived)
      console.log(`survived ${change.file}:${change.line}\n  - ${change.before}\n  + ${change.after}`);
    if (tried.length % 20 === 0)
      console.error(`${tried.length} tried, ${tried.filter((one) => one.survived).length} survived`);
  }
  rmSync(folder, { recursive: true, force: true });
}
await Promise.all(Array.from({ length: Number(values.workers) }, (_, index) => work(index + 1)));

const survivors = tried.filter(({ survived }) => survived);
const score = (part, of) => `${(100 * (1 - part.length / of.length)).toFixed(1)} %`;
for (const folder of FOLDERS) {
  const [part, of] = [survivors, tried].map((list) =>
    list.filter(({ file }) => file.startsWith(`src/${folder}/`)),
  );
  if (of.length > 0)
    console.log(`${folder}: ${score(part, of)} (${of.length - part.length} of ${of.length})`);
}
console.log(
  `Score: ${score(survivors, tried)} (${tried.length - survivors.length} of ${tried.length}, seed ${values.seed})`,
);
if (values.report !== undefined) writeFileSync(values.report, JSON.stringify(survivors, null, 2));
