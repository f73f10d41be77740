// Installs and builds what is missing or older than its source, so that `npm run demo` works in a new clone.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const stdio = ["ignore", process.stderr, process.stderr];

/** Runs npm with its own script, because Windows cannot start the command "npm" without a shell. */
function npm(...words) {
  const script = process.env.npm_execpath;
  if (script?.endsWith(".js")) execFileSync(process.execPath, [script, ...words], { cwd: root, stdio });
  else execFileSync("npm", words, { cwd: root, stdio, shell: process.platform === "win32" });
}

/** The time (ms) of the newest change below a path. A file that was deleted changes the time of its folder. */
function newest(path) {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

const timeOf = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);

if (timeOf(join(root, "node_modules/.package-lock.json")) < timeOf(join(root, "package-lock.json"))) {
  console.error("Installing dependencies (npm ci) …");
  npm("ci", "--no-audit", "--no-fund");
}
const sources = ["src", "sandbox", "tsconfig.json", "package.json", "scripts/build.js"].map((name) =>
  join(root, name),
);
if (timeOf(join(root, "dist/source-contact-intelligence.js")) < Math.max(...sources.map(newest))) {
  console.error("Building (npm run build) …");
  execFileSync(process.execPath, [join(root, "scripts/build.js")], { stdio });
}
