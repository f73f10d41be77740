// `npm run test:clients -- NAME [words for pytest or vitest]` runs a suite of real programs: a folder of test/clients.
// A suite's requirements.txt names its Python packages, which are installed below .cache/ when the file changes.
// Suites that load tables get a temporary PostgreSQL, which the variables of psql name.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

const root = join(import.meta.dirname, "..");
const suites = join(root, "test/clients");
const [name = "", ...words] = process.argv.slice(2);
const suite = join(suites, name);
const names = readdirSync(suites).filter((one) => one !== "support");
if (!names.includes(name)) {
  console.error(`Name a suite: npm run test:clients -- ${names.join(" | ")}`);
  process.exit(2);
}

/** Runs the tests that are written in Python. */
function pytest() {
  const requirements = join(suite, "requirements.txt");
  const home = join(root, ".cache/clients", name);
  const stamp = join(home, "requirements.txt");
  const wanted = readFileSync(requirements, "utf8");
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
    console.error(`Installing test/clients/${name}/requirements.txt (once) …`);
    rmSync(home, { recursive: true, force: true });
    const uv = (...args) => execFileSync("uv", args, { stdio: "inherit" });
    uv("venv", "--quiet", "--seed", home);
    uv("pip", "install", "--quiet", "--python", home, "-r", requirements);
    writeFileSync(stamp, wanted);
  }
  const env = { ...process.env, PYTHONPATH: join(suites, "support"), PYTHONDONTWRITEBYTECODE: "1" };
  return run([join(home, "bin/python"), "-m", "pytest", "-p", "no:cacheprovider", ...words, suite], env);
}

/** Runs the tests that are written in TypeScript. */
function vitest() {
  const project = name === "meltano" ? "meltano" : "clients";
  const program = join(root, "node_modules/vitest/vitest.mjs");
  return run([process.execPath, program, "run", "--project", project, suite, ...words], process.env);
}

function run(command, env) {
  const [program, ...args] = hasTables ? ["pg_virtualenv", "-t", ...command] : command;
  return spawnSync(program, args, { cwd: root, stdio: "inherit", env }).status;
}

/** Installs Debian's package of PostgreSQL if it is missing, as root. */
function installPostgres() {
  if (existsSync("/usr/bin/pg_virtualenv")) return;
  if (process.getuid?.() !== 0)
    throw new Error("Install Debian's package postgresql, or run the suite as root once");
  process.env.DEBIAN_FRONTEND = "noninteractive";
  execFileSync("apt-get", "install -y --no-install-recommends postgresql".split(" "), { stdio: "inherit" });
}

// uv makes Python environments in seconds where pip takes minutes. It lives below .cache/, as do the packages that it fetches.
process.env.UV_CACHE_DIR ??= join(root, ".cache/uv-cache");
process.env.UV_PYTHON_DOWNLOADS ??= "never";

/** The name of a Python that the packages of all suites run on: 3.10 to 3.12. Throws if there is none. */
function findPython() {
  const names = [process.env.PYTHON, "python3.12", "python3.11", "python3.10", "python3"];
  const isFit = (candidate) =>
    candidate !== undefined &&
    spawnSync(candidate, ["-c", "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 13))"])
      .status === 0;
  const found = names.find(isFit);
  if (found === undefined) throw new Error("PATH has no Python 3.10, 3.11 or 3.12: name one in PYTHON");
  return found;
}

/** The path of uv, which is installed at the first call. */
function findUv() {
  const home = join(root, ".cache/uv");
  const uv = join(home, "bin/uv");
  if (existsSync(uv)) return uv;
  execFileSync(findPython(), ["-m", "venv", home]);
  execFileSync(join(home, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "uv==0.13.9"]);
  return uv;
}

process.env.PATH = [dirname(findUv()), process.env.PATH].join(delimiter);
process.env.UV_PYTHON = findPython();
const hasTables = ["meltano", "recipes"].includes(name);
if (hasTables) installPostgres();
const has = (end) => readdirSync(suite).some((file) => file.endsWith(end));
const ended = [has(".suite.ts") ? vitest() : 0, has("requirements.txt") ? pytest() : 0];
process.exitCode = ended.every((status) => status === 0) ? 0 : 1;
