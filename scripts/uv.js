// uv makes Python environments in seconds where pip takes minutes. It lives below .cache/, as do the packages that it fetches.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const cache = fileURLToPath(new URL("../.cache", import.meta.url));
process.env.UV_CACHE_DIR ??= join(cache, "uv-cache");
process.env.UV_PYTHON_DOWNLOADS ??= "never";

/** The name of a Python that the packages of all suites run on: 3.10 to 3.12. Throws if there is none. */
export function findPython() {
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

/** The path of uv, which is installed at the first call. */
export function findUv() {
  const home = join(cache, "uv");
  const uv = join(home, "bin/uv");
  if (existsSync(uv)) return uv;
  execFileSync(findPython(), ["-m", "venv", home]);
  execFileSync(join(home, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "uv==0.13.9"]);
  return uv;
}
