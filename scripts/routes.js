// Measures the routes of README.md as a new user meets them: from `git clone` to the first row, in an empty HOME, by the
// commands of the pages, against the sandbox. `npm run routes -- npm docker`; without names, all. Prints the seconds of each
// step. `--write` puts them into README.md; `--check` only looks whether its table has these routes and their commands. Needs
// what the routes need: Python with venv, docker, a network, and for PostgreSQL a server that psql finds.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { importSource } from "./import-source.js";

const { docBlock } = await importSource("test/support/docs.ts");
const root = fileURLToPath(new URL("..", import.meta.url));
const program = join(root, "dist/sandbox/contact-intelligence-sandbox.js");

const NPM = ["npm", "README.md", "sh", "npm pack"];
const INIT = ["init", "README.md", "sh", "intelligence init"];
const READ = ["read", "README.md", "sh", "--output rows"];
const IMAGE = ["docker build", "docs/docker.md", "sh", "docker build"];

const FILES = ["read", "docs/files.md", "sh", "--output contacts"];
const pip = (names) => ["pip", `pip install ${names}`];

/**
 * The blocks of each route, or commands that stand in its text, with the folder of the clone in which each runs, and the path
 * there that has rows at the end. `after`: what else takes time.
 */
const ROUTES = {
  // What Airbyte does with the image; Airbyte's own time comes on top.
  airbyte: {
    use: "Airbyte (OSS, Cloud)",
    read: ["docs/airbyte.md"],
    steps: [IMAGE, NPM, INIT, ["spec to read", "docs/docker.md", "sh", "0.1.0 spec"]],
    rows: "messages.jsonl",
    after: "; then your registry and Airbyte decide",
  },
  pyairbyte: {
    use: "PyAirbyte",
    read: ["docs/pyairbyte.md"],
    steps: [
      NPM,
      ["pip", "docs/pyairbyte.md", "sh", "pip install"],
      ["read", "docs/pyairbyte.md", "python", "to_pandas"],
    ],
    rows: "warehouse.duckdb",
  },
  meltano: {
    use: "Meltano",
    read: ["docs/meltano.md"],
    steps: [
      NPM,
      ["pip", "docs/meltano.md", "sh", "pip install"],
      ["project", "docs/meltano.md", "sh", "meltano init"],
      ["add", "docs/meltano.md", "sh", "--about --format meltano >", "contacts"],
      ["run", "docs/meltano.md", "sh", "meltano run tap-contact-intelligence target-jsonl", "contacts"],
    ],
    rows: "contacts/output/people.jsonl",
  },
  docker: {
    use: "Docker",
    read: ["docs/docker.md"],
    steps: [IMAGE, ["docker run", "docs/docker.md", "sh", "docker volume create"]],
  },
  npm: {
    use: "files, installed with npm",
    read: ["docs/files.md"],
    steps: [NPM, INIT, READ],
    rows: "rows/people",
  },
  pip: {
    use: "files, installed with pip",
    read: ["docs/files.md"],
    steps: [["pip", "README.md", "sh", "node scripts/wheel.js"], INIT, READ],
    rows: "rows/people",
  },
  cron: {
    use: "cron",
    read: ["docs/cron.md"],
    steps: [NPM, INIT, ["the line", "docs/cron.md", "cron", "PATH="]],
    rows: "contacts/people",
  },
  duckdb: {
    use: "DuckDB, Parquet",
    read: ["docs/files.md"],
    steps: [NPM, INIT, FILES, pip("duckdb"), ["query", "docs/files.md", "sql", "VIEW people"]],
    rows: "contacts/people",
  },
  postgres: {
    use: "PostgreSQL",
    read: ["docs/files.md"],
    steps: [NPM, INIT, FILES, ["load", "docs/files.md", "sh", "people_loads"]],
    rows: "loaded",
  },
  polars: {
    use: "a notebook with polars",
    read: ["docs/files.md"],
    steps: [NPM, INIT, FILES, pip("polars"), ["query", "docs/files.md", "python", "import polars"]],
    rows: "contacts/people",
  },
  pandas: {
    use: "a notebook with pandas",
    read: ["docs/files.md"],
    steps: [NPM, INIT, FILES, pip("pandas"), ["query", "docs/files.md", "python", "import pandas"]],
    rows: "contacts/people",
  },
  dlt: {
    use: "dlt",
    read: ["docs/files.md"],
    steps: [NPM, INIT, FILES, pip("'dlt[duckdb]'"), ["load", "docs/files.md", "python", "import dlt"]],
    rows: "warehouse.duckdb",
  },
  shell: {
    use: "a shell, JSON lines",
    read: ["docs/standalone.md"],
    steps: [NPM, INIT, ["read", "docs/standalone.md", "sh", "--stream people --state-file"]],
    rows: "people.jsonl",
  },
};

/** The routes that no single machine can measure. */
const UNMEASURED =
  "| Kubernetes, Airflow (very large accounts) | [docs/kubernetes.md](docs/kubernetes.md), [docs/airflow.md](docs/airflow.md) | 4 | your cluster decides |";

/** A sandbox in a process of its own, with its address and its key. */
async function startSandbox() {
  const words = [program, "--port", "0"];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface(child.stdout)) {
    if (!line.startsWith("Config: ")) continue;
    const { base_url: url, api_key: key } = JSON.parse(line.slice("Config: ".length));
    return { url, key, stop: () => child.kill() };
  }
  throw new Error("The sandbox did not start");
}

function run(what, script, { cwd, env, input = "" }) {
  const began = performance.now();
  const words = ["-euo", "pipefail", "-c", script];
  const { status, stdout, stderr } = spawnSync("bash", words, { cwd, env, input, encoding: "utf8" });
  if (status !== 0) throw new Error(`${what} ended with ${status}:\n${stdout}${stderr}`);
  return [what, (performance.now() - began) / 1000];
}

/** A volume of its own, because a user's may have the name of the page's. */
const VOLUME = `routes-${process.pid}`;

/** The block as a script, with the sandbox in place of the examples' addresses, and on the network of this machine. */
function scriptOf(text, language, { url, key }) {
  const said = text
    .replaceAll(/https:\/\/contacts\.example\.com|http:\/\/127\.0\.0\.1:8080/g, url)
    .replaceAll("svc_…", key)
    .replaceAll("docker run ", "docker run --network host ")
    .replaceAll("volume create contacts", `volume create ${VOLUME}`)
    .replaceAll("contacts:/data", `${VOLUME}:/data`)
    .replaceAll("docker build ", `docker build ${process.env.DOCKER_BUILD_ARGUMENTS ?? ""} `);
  switch (language) {
    case "python":
      return `python <<'PYTHON'\n${said}\nPYTHON`;
    case "sql":
      return `python <<'PYTHON'\nimport duckdb\nduckdb.execute(r"""${said}""")\nprint(duckdb.sql("SELECT count(*) FROM people"))\nPYTHON`;
    case "cron":
      return said.replace(/.*\* \* \* \* /s, "").replace("/var/lib/contacts", ".");
    default:
      return said;
  }
}

/** What a step runs, in which language. */
function textOf([, page, language, words]) {
  return language === undefined ? [page, "sh"] : [docBlock(page, language, words), language];
}

/** How many commands a person types, the lines of a shell. A program or a script counts as one. */
function commandsOf(step) {
  const [text, language] = textOf(step);
  if (language !== "sh" || text.startsWith("set -e")) return 1;
  const bare = text.replaceAll(/<<'(\w+)'\n.*?\n\1/gs, "").replaceAll("\\\n", " ");
  return bare.trim().split("\n").length;
}

function measure({ steps, rows }, sandbox) {
  const home = mkdtempSync(join(tmpdir(), "route-"));
  try {
    const clone = join(home, "clone");
    const venv = join(home, "venv");
    const prefix = join(home, ".local");
    mkdirSync(prefix);
    const path = [join(venv, "bin"), join(prefix, "bin"), process.env.PATH].join(delimiter);
    // `npm run` leaves its own settings in the environment.
    const bare = Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"));
    // Root's dlt keeps what it knows of a pipeline outside of any home.
    const own = { HOME: home, PATH: path, DLT_DATA_DIR: join(home, "dlt"), npm_config_prefix: prefix };
    const env = { ...Object.fromEntries(bare), ...own };
    const answers = { env, input: `${sandbox.url}\n${sandbox.key}\n` };
    const usesPython = steps.some(([what]) => what === "pip");
    const times = [
      run("clone", `git clone --quiet "${root}" clone`, { cwd: home, env }),
      ...(usesPython ? [run("venv", "python3 -m venv venv", { cwd: home, env })] : []),
      ...steps.map((step) => {
        const [what, , , , folder = "."] = step;
        return run(what, scriptOf(...textOf(step), sandbox), { ...answers, cwd: join(clone, folder) });
      }),
    ];
    if (rows !== undefined) expectRows(join(clone, rows));
    return times;
  } finally {
    if (steps.includes(IMAGE)) spawnSync("docker", ["volume", "rm", "-f", VOLUME]);
    rmSync(home, { recursive: true, force: true });
  }
}

/** Throws for a folder without files, and for a file without content. */
function expectRows(path) {
  const size = /\.\w+$/.test(path) ? readFileSync(path).length : readdirSync(path).length;
  if (size === 0) throw new Error(`There are no rows in ${path}`);
}

const README = join(root, "README.md");
const BEGIN = "<!-- routes: generated by `npm run routes -- --write` -->\n\n";
const END = "\n\n<!-- /routes -->";

/** A row of README's table. @param times what was measured; undefined: it stays as it is */
function rowOf({ use, read, steps, after = "" }, times, readme) {
  const links = read.map((page) => `[${page}](${page})`).join(", ");
  const start = `| ${use} | ${links} | ${steps.reduce((sum, step) => sum + commandsOf(step), 1)} |`;
  const kept = readme.split("\n").find((line) => line.startsWith(start));
  if (times === undefined) return kept ?? `${start} |`;
  const total = times.reduce((sum, [, seconds]) => sum + seconds, 0);
  const [what, longest] = times.reduce((most, one) => (one[1] > most[1] ? one : most));
  const most = longest > total / 2 ? `, of which ${longest.toFixed(0)} s for ${what}` : "";
  return `${start} ${total.toFixed(0)} s${most}${after} |`;
}

/** README.md with what was measured, by the names of routes. */
function written(measured, readme) {
  const rows = Object.entries(ROUTES).map(([name, route]) => rowOf(route, measured.get(name), readme));
  const head = ["| you use | read | commands | from clone to the first row |", "| --- | --- | ---: | --- |"];
  const before = readme.slice(0, readme.indexOf(BEGIN) + BEGIN.length);
  return before + [...head, ...rows, UNMEASURED].join("\n") + readme.slice(readme.indexOf(END));
}

/** Each route has a sandbox of its own, because the requests of the one before would count against the key's limit. */
async function measureAll(names) {
  const measured = new Map();
  for (const name of names.length === 0 ? Object.keys(ROUTES) : names) {
    if (name === "postgres" && spawnSync("psql", ["-c", "SELECT 1"]).status !== 0) {
      console.log("postgres: not measured, because psql finds no server (PGHOST, PGUSER, PGDATABASE)");
      continue;
    }
    const sandbox = await startSandbox();
    try {
      const times = measure(ROUTES[name], sandbox);
      measured.set(name, times);
      const total = times.reduce((sum, [, seconds]) => sum + seconds, 0);
      const parts = times.map(([what, seconds]) => `${what} ${seconds.toFixed(1)}`).join(", ");
      console.log(`${name}: ${total.toFixed(0)} s (${parts})`);
    } finally {
      sandbox.stop();
    }
  }
  return measured;
}

const words = process.argv.slice(2);
const readme = readFileSync(README, "utf8");
if (words.includes("--check")) {
  if (written(new Map(), readme) !== readme) {
    console.error("README.md has other routes than scripts/routes.js: run npm run routes -- --write");
    process.exitCode = 1;
  }
} else {
  const measured = await measureAll(words.filter((word) => !word.startsWith("--")));
  if (words.includes("--write")) writeFileSync(README, written(measured, readFileSync(README, "utf8")));
}
