// Runs a suite that is written in Python: python-suite.js NAME [pytest's arguments]. Its packages are those of
// test/NAME/requirements.txt, in a virtual environment under .cache/ that is made when they change.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [name, ...words] = process.argv.slice(2);
const suite = join(root, "test", name);
const requirements = join(suite, "requirements.txt");
const home = join(root, ".cache", name);
const python = join(home, "bin", "python");
const stamp = join(home, "requirements.txt");

/** PyAirbyte runs on 3.10 to 3.12. */
function findPython() {
  const names = [process.env.PYTHON, "python3.12", "python3.11", "python3.10", "python3"];
  const isFit = (candidate) =>
    candidate !== undefined &&
    spawnSync(candidate, ["-c", "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 13))"])
      .status === 0;
  const found = names.find(isFit);
  if (found === undefined)
    throw new Error("There is no Python 3.10, 3.11 or 3.12 on PATH; name one in PYTHON");
  return found;
}

const isMade = existsSync(stamp) && readFileSync(stamp, "utf8") === readFileSync(requirements, "utf8");
if (!isMade) {
  console.error(`Installing test/${name}/requirements.txt into .cache/${name} (once) …`);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(join(root, ".cache"), { recursive: true });
  execFileSync(findPython(), ["-m", "venv", home], { stdio: "inherit" });
  execFileSync(python, ["-m", "pip", "install", "-q", "-r", requirements], { stdio: "inherit" });
  writeFileSync(stamp, readFileSync(requirements, "utf8"));
}
const { status } = spawnSync(python, ["-m", "pytest", "-p", "no:cacheprovider", ...words, suite], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, PYTHONPATH: join(root, "test", "support"), PYTHONDONTWRITEBYTECODE: "1" },
});
process.exitCode = status ?? 1;
