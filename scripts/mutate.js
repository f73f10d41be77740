// `npm run mutate [-- --count 250 --seed 1 --minutes 30 --only src/streams --workers 2 --results FILE]`: makes single
// changes to a copy of the source, one at a time, and runs the tests that run the changed code. Prints the survivors and the
// score. Changes that do not compile, or that the linter refuses as a forgotten `await`, are not counted. The seed chooses the
// changes: a new one each run, unless it is given. The results are kept: a run with the same seed goes on where it ended, and
// tries the survivors again. Remove the file to start from nothing. `--dangerous`: the changes of test/mutation/dangerous.md
// instead. `--budget 60`: of the tests that run a block, only as many are tried as usually take a minute, the quick ones
// first. `--quick` leaves out the tests with processes of their own. `--dry` only says what is possible.
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomInt } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { dangerousChanges, isWorst } from "../test/mutation/dangerous.js";
import { mutationAt, mutationsOf } from "../test/mutation/rules.js";

/** Tests with processes of their own, which notice what no test within a process can, by the folder of a change. */
const WITH_PROCESSES = {
  jobs: ["e2e/paid-once-killed.lab"],
  protocol: ["e2e/process"],
  run: ["e2e/process", "e2e/files-killed.lab", "e2e/process.lab"],
  files: ["e2e/process", "e2e/files-killed.lab", "e2e/process.lab"],
  commands: ["e2e/process", "e2e/command-line"],
  "": ["e2e/process", "e2e/process.lab"],
};
const root = fileURLToPath(new URL("..", import.meta.url)).replace(/[\\/]$/, "");
const cache = join(root, ".cache", "mutation");
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "250" },
    seed: { type: "string", default: String(randomInt(1_000_000)) },
    dangerous: { type: "boolean", default: false },
    dry: { type: "boolean", default: false },
    minutes: { type: "string", default: "600" },
    workers: { type: "string", default: "1" },
    quick: { type: "boolean", default: false },
    budget: { type: "string", default: "600" },
    only: { type: "string", default: "src/" },
    tests: {
      type: "string",
      default:
        "^test/(?!.*(-memory|e2e/process|architecture|repository|docs|transcripts|lab\\.test))(unit|e2e|lab)/",
    },
    results: { type: "string", default: join(cache, "results.jsonl") },
  },
});
const equivalents = JSON.parse(readFileSync(join(root, "test/mutation/equivalent.json"), "utf8"));

const digest = (...parts) => createHash("sha256").update(parts.join("\n")).digest("hex");

/** Changes to a file, each with an id that stays the same while the lines around it change. */
function named(file, changes) {
  const seen = new Map();
  return changes.map((change) => {
    const name = digest(file, change.before, change.after);
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return { file, id: digest(name, seen.get(name)).slice(0, 16), ...change };
  });
}

/** The list of dangerous changes. Throws for a list that does not fit the source. */
function listed(sources) {
  const changes = dangerousChanges(sources);
  const lost = changes.filter(({ hits }) => hits.length !== 1);
  for (const { snippet, hits } of lost) console.error(`dangerous.md: in ${hits.length} places: ${snippet}`);
  if (lost.length > 0)
    throw new Error(`dangerous.md has ${lost.length} texts that are not in src/ exactly once`);
  return changes.flatMap(({ hits: [{ file, ...place }], by, harm, what }) => {
    const change = mutationAt(sources.get(file), { ...place, by });
    return named(file, [{ ...change, harm, what }]);
  });
}

const isSame = (a, b) => a.file === b.file && a.before === b.before && a.after === b.after;
const isEquivalent = (change) => equivalents.some((known) => isSame(known, change));

/** What tools make. */
const MADE = new Set([".cache", ".git", "coverage", "dist", "node_modules"]);

/** A copy of the repository that changes may break, built. */
function workshop(number) {
  // Not in the cache: the linter looks into no folder of that name.
  const folder = join(tmpdir(), `mutation-${digest(root).slice(0, 8)}-${number}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(root).filter((one) => !MADE.has(one)))
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "tsconfig.src.json"), JSON.stringify(ONLY_SOURCE));
  if (!compiles(folder) || !build(folder)) throw new Error("The source does not compile before any change");
  return folder;
}

const build = (folder) => spawnSync(process.execPath, ["scripts/build.js"], { cwd: folder }).status === 0;

/** Whether the compiler takes the source. */
function compiles(folder) {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  return spawnSync(process.execPath, [tsc, "-p", "tsconfig.src.json"], { cwd: folder }).status === 0;
}

/** Whether the linter takes a file in which a promise may be left alone: of its rules this one looks for what tests rarely see. */
function isAwaited(folder, file) {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  const words = [biome, "lint", "--only=nursery/noFloatingPromises", file];
  return spawnSync(process.execPath, words, { cwd: folder }).status === 0;
}

const ONLY_SOURCE = {
  extends: "./tsconfig.json",
  include: ["src"],
  compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, allowUnreachableCode: true },
};

/** Ends the tests that run now. */
const running = new Set();
for (const signal of ["SIGINT", "SIGTERM"])
  process.once(signal, () => {
    for (const end of running) end();
    process.exit(1);
  });

/** Runs tests, in this order, until the first fails. A run that does not end in `ms` is one that fails. */
async function test(folder, files, ms, env = {}) {
  const [report, temporary] = [join(folder, "report.json"), join(folder, "tmp")];
  for (const path of [report, temporary]) rmSync(path, { recursive: true, force: true });
  mkdirSync(temporary);
  const words = ["run", "--config", "test/mutation/vitest.config.js", "--reporter=json"];
  const child = spawn(
    process.execPath,
    [join(root, "node_modules/vitest/vitest.mjs"), ...words, `--outputFile=${report}`],
    {
      cwd: folder,
      stdio: "ignore",
      detached: true,
      env: { ...process.env, ...env, TMPDIR: temporary, MUTATION_TESTS: JSON.stringify(files) },
    },
  );
  const end = () => process.kill(-child.pid, "SIGKILL");
  running.add(end);
  const late = setTimeout(end, ms);
  const code = await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(late);
  running.delete(end);
  const { testResults = [] } = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : {};
  const results = testResults.map(({ name, ...result }) => ({
    ...result,
    name: name.slice(name.lastIndexOf("/test/") + 1),
  }));
  return { passed: code === 0, failure: failureIn(results, code), results };
}

function failureIn(results, code) {
  for (const { name, assertionResults, status } of results) {
    const failed = assertionResults.find((one) => one.status === "failed");
    if (failed !== undefined) return `${name}: ${failed.fullName}`;
    if (status === "failed") return `${name}: does not load`;
  }
  return code === 0 ? undefined : "does not end";
}

/** Which tests run which blocks of the source, and how long (ms) each takes. What is known of tests that have not changed is kept. */
async function coverage(folder) {
  const file = join(cache, "coverage.json");
  const known = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const digestOf = (path) => digest(readFileSync(join(folder, path)));
  const shared = digest(...["src", "test/support"].flatMap((path) => filesBelow(folder, path)).map(digestOf));
  const tests = testFiles(folder).map((name) => ({ name, digest: digest(shared, digestOf(name)) }));
  const fresh = tests.filter(({ name, digest }) => known[name]?.digest !== digest);
  const hits = join(folder, "hits");
  mkdirSync(hits, { recursive: true });
  const names = fresh.map(({ name }) => name);
  const { results } = await test(folder, names, 3_600_000, { MUTATION_HITS: hits });
  const table = Object.fromEntries(tests.map(({ name }) => [name, known[name]]));
  for (const { name, digest } of fresh) {
    const { startTime, endTime, status } = results.find((result) => result.name === name) ?? {};
    if (status === "passed") {
      // A test that is skipped as a whole, such as one that needs the repository's history, runs nothing.
      const ran = join(hits, `${name.replaceAll("/", "+")}.json`);
      const blocks = existsSync(ran) ? JSON.parse(readFileSync(ran, "utf8")) : [];
      table[name] = { digest, ms: endTime - startTime, blocks };
    } else {
      delete table[name];
      console.error(`${name} is left out: it fails before any change`);
    }
  }
  writeFileSync(file, JSON.stringify(table));
  return Object.entries(table).map(([name, { ms, blocks }]) => ({ name, ms, blocks: new Set(blocks) }));
}

/** The tests with processes of their own that pass before any change. */
async function soundOnes(folder) {
  const sound = new Set();
  for (const name of values.quick ? [] : new Set(Object.values(WITH_PROCESSES).flat())) {
    const file = `test/${name}.test.ts`;
    if ((await test(folder, [file], 600_000)).passed) sound.add(file);
    else console.error(`${file} is left out: it fails before any change`);
  }
  return sound;
}

const filesBelow = (folder, path) =>
  readdirSync(join(folder, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

/** Tests that can notice a change. What takes minutes, or runs the built program, is left out. */
const testFiles = (folder) =>
  filesBelow(folder, "test").filter(
    (name) => name.endsWith(".test.ts") && new RegExp(values.tests).test(name),
  );

/** Which of the tests fails; undefined if none does. On a busy machine any may fail now and then, so one has to fail twice. */
async function noticedBy(folder, names, twin, ms) {
  for (let left = names; left.length > 0; ) {
    const { passed, failure = "" } = await test(folder, left, ms);
    if (passed) return undefined;
    const name = left.find((one) => failure.startsWith(`${one}:`));
    if (name === undefined || name === twin || !(await test(folder, [name], ms)).passed) return failure;
    left = left.slice(left.indexOf(name) + 1);
  }
  return undefined;
}

/** The part of the source that a file is in; empty for the files beside the folders. */
const folderOf = (file) => file.split("/").slice(1, -1).join("/");

/** Tries a change. Returns who noticed it: a test, or the compiler or linter, or nobody. A dangerous one is left to the tests. */
async function attempt(folder, covered, sound, { file, start, end, by, block, harm }) {
  const source = readFileSync(join(folder, file), "utf8");
  writeFileSync(join(folder, file), source.slice(0, start) + by + source.slice(end));
  try {
    if (!compiles(folder)) return "compiler";
    const dropsAwait = harm === undefined && source.startsWith("await ", start) && !by.startsWith("await ");
    if (dropsAwait && !isAwaited(folder, file)) return "compiler";
    // Some tests run the built programs.
    if (!build(folder)) return "compiler";
    const twin = file.replace("src/", "test/unit/").replace(".ts", ".test.ts");
    const rank = ({ name, ms }) => (name === twin ? -1 : ms);
    const tests = covered
      .filter(({ blocks }) => blocks.has(`${file}:${block}`))
      .sort((a, b) => rank(a) - rank(b));
    let usual = 0;
    const names = tests.flatMap(({ name, ms }) => {
      if (name === twin) return [name];
      usual += ms;
      return usual <= Number(values.budget) * 1000 ? [name] : [];
    });
    const failure = await noticedBy(folder, names, twin, 120_000 + 5_000 * Number(values.budget));
    if (failure !== undefined) return failure;
    // The docs say what the constants are.
    const others = [
      ...new Set([...(WITH_PROCESSES[folderOf(file)] ?? []), ...(block === 0 ? ["e2e/docs"] : [])]),
    ]
      .map((name) => `test/${name}.test.ts`)
      .filter((name) => sound.has(name));
    if (others.length === 0) return null;
    return (await noticedBy(folder, others, twin, 600_000)) ?? null;
  } finally {
    writeFileSync(join(folder, file), source);
  }
}

const sources = new Map(
  filesBelow(root, "src")
    .filter((name) => name.endsWith(".ts"))
    .map((file) => [file, readFileSync(join(root, file), "utf8")]),
);
const all = [...sources].flatMap(([file, source]) => named(file, mutationsOf(source)));
const fresh = (values.dangerous ? listed(sources) : all.filter((change) => !isEquivalent(change))).filter(
  ({ file }) => file.includes(values.only),
);
const chosen = values.dangerous
  ? fresh
  : fresh
      .map((change) => ({ change, rank: digest(values.seed, change.id) }))
      .sort((a, b) => (a.rank < b.rank ? -1 : 1))
      .slice(0, Number(values.count))
      .map(({ change }) => change);
const stale = equivalents.filter((known) => !all.some((change) => isSame(known, change)));
for (const { file, before } of stale)
  console.error(`equivalent.json names a change that is no longer possible: ${file}: ${before}`);
mkdirSync(cache, { recursive: true });
const kept = existsSync(values.results) ? readFileSync(values.results, "utf8").trim().split("\n") : [];
const found = new Map(
  kept
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
    .map((one) => [one.id, one]),
);
const todo = chosen.filter(({ id }) => (found.get(id)?.noticed ?? null) === null);
// Those that were never tried come first, then the survivors of earlier runs.
todo.sort((a, b) => Number(found.has(a.id)) - Number(found.has(b.id)));
const until = performance.now() + Number(values.minutes) * 60_000;
console.error(
  `${all.length} changes are possible, ${chosen.length} are chosen${values.dangerous ? "" : ` by seed ${values.seed}`}, ` +
    `${todo.length} of them are tried`,
);

let known;
async function work(number) {
  const folder = workshop(number);
  known ??= coverage(folder).then(async (tests) => [tests, await soundOnes(folder)]);
  const [tests, sound] = await known;
  for (let change = todo.shift(); change !== undefined && performance.now() < until; change = todo.shift()) {
    const began = performance.now();
    const noticed = await attempt(folder, tests, sound, change);
    const { id, file, line, before, after, harm, what } = change;
    const seconds = Math.round((performance.now() - began) / 1000);
    const result = { id, file, line, before, after, harm, what, noticed, seconds };
    found.set(id, result);
    appendFileSync(values.results, `${JSON.stringify(result)}\n`);
    if (noticed !== null) continue;
    console.log(
      `survived ${file}:${line}${harm === undefined ? "" : ` (${harm}: ${what})`}\n  - ${before}\n  + ${after}`,
    );
  }
  rmSync(folder, { recursive: true, force: true });
}
const workers = todo.length === 0 || values.dry ? 0 : Number(values.workers);
await Promise.all(Array.from({ length: workers }, (_, index) => work(index + 1)));

const tried = chosen
  .map(({ id }) => found.get(id))
  .filter((one) => one !== undefined && one.noticed !== "compiler");
const noticed = tried.filter((one) => one.noticed !== null);
const score = (part, of) =>
  of.length === 0
    ? "none, nothing was tried"
    : `${((100 * part.length) / of.length).toFixed(1)} % (${part.length} of ${of.length})`;
/** The score of each group, and of all. */
const groupOf = ({ harm, file }) => harm ?? `src/${folderOf(file)}`;
for (const group of new Set(tried.map(groupOf))) {
  const [part, of] = [noticed, tried].map((list) => list.filter((one) => groupOf(one) === group));
  console.log(`${group}: ${score(part, of)}`);
}
const which = values.dangerous ? "the list" : `seed ${values.seed}`;
console.log(`Score: ${score(noticed, tried)}, ${which}, ${chosen.length - tried.length} not counted`);
if (values.dangerous && tried.some((one) => one.noticed === null && isWorst(one))) process.exitCode = 1;
