// Measures the routes of README.md as a new user meets them: from `git clone` to the first row, in an empty HOME, by the
// commands of the pages, against the sandbox. `npm run routes -- npm pip docker airbyte pyairbyte meltano`; without names,
// all. Prints the seconds of each step. Needs what the routes need: Python with venv, docker, a network.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
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

/** The blocks of each route, with the folder of the clone in which each runs, and the path there that has rows at the end. */
const ROUTES = {
  npm: { steps: [NPM, INIT, READ], rows: "rows/people" },
  pip: { steps: [["pip", "README.md", "sh", "npm run wheel"], INIT, READ], rows: "rows/people" },
  docker: { steps: [IMAGE, ["docker run", "docs/docker.md", "sh", "docker volume create"]] },
  // What Airbyte does with the image; Airbyte's own time comes on top.
  airbyte: {
    steps: [IMAGE, NPM, INIT, ["spec to read", "docs/docker.md", "sh", "0.1.0 spec"]],
    rows: "messages.jsonl",
  },
  pyairbyte: {
    steps: [
      NPM,
      ["pip", "docs/pyairbyte.md", "sh", "pip install"],
      ["read", "docs/pyairbyte.md", "python", "to_pandas"],
    ],
    rows: "warehouse.duckdb",
  },
  meltano: {
    steps: [
      NPM,
      ["pip", "docs/meltano.md", "sh", "pip install"],
      ["project", "docs/meltano.md", "sh", "meltano init"],
      ["add", "docs/meltano.md", "sh", "--from-ref", "contacts"],
      ["run", "docs/meltano.md", "sh", "meltano run tap-contact-intelligence target-jsonl", "contacts"],
    ],
    rows: "contacts/output/people.jsonl",
  },
};

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
  return language === "python" ? `python <<'PYTHON'\n${said}\nPYTHON` : said;
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
    const env = { ...Object.fromEntries(bare), HOME: home, PATH: path, npm_config_prefix: prefix };
    const answers = { env, input: `${sandbox.url}\n${sandbox.key}\n` };
    const usesPython = steps.some(([what]) => what === "pip");
    const times = [
      run("clone", `git clone --quiet "${root}" clone`, { cwd: home, env }),
      ...(usesPython ? [run("venv", "python3 -m venv venv", { cwd: home, env })] : []),
      ...steps.map(([what, page, language, words, folder = "."]) =>
        run(what, scriptOf(docBlock(page, language, words), language, sandbox), {
          ...answers,
          cwd: join(clone, folder),
        }),
      ),
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
  const size = path.endsWith("people") ? readdirSync(path).length : readFileSync(path).length;
  if (size === 0) throw new Error(`There are no rows in ${path}`);
}

const names = process.argv.slice(2);
const sandbox = await startSandbox();
try {
  for (const name of names.length === 0 ? Object.keys(ROUTES) : names) {
    const times = measure(ROUTES[name], sandbox);
    const total = times.reduce((sum, [, seconds]) => sum + seconds, 0);
    const parts = times.map(([what, seconds]) => `${what} ${seconds.toFixed(1)}`).join(", ");
    console.log(`${name}: ${total.toFixed(0)} s (${parts})`);
  }
} finally {
  sandbox.stop();
}
