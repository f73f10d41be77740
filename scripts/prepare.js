// Lets `npm run demo` and `npm test` be the first command after a clone: installs and builds what is missing or older than its source.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = (script) => execFileSync("npm", script, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
const newest = (path) =>
  statSync(path).isDirectory()
    ? Math.max(...readdirSync(path).map((name) => newest(join(path, name))))
    : statSync(path).mtimeMs;
const stamp = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);

const installed = join(root, "node_modules", ".package-lock.json");
if (stamp(installed) < stamp(join(root, "package-lock.json"))) {
  console.error("Installing dependencies (npm ci) …");
  run(["ci", "--no-audit", "--no-fund"]);
}
const built = join(root, "dist", "source-contact-intelligence.js");
if (
  stamp(built) <
  Math.max(newest(join(root, "src")), stamp(join(root, "tsconfig.json")), stamp(join(root, "package.json")))
) {
  console.error("Building (npm run build) …");
  run(["run", "build"]);
}
