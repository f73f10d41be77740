// Does what a release does, from a clone of the last commit, and publishes nothing: addresses, package, bill of materials,
// image and wheel. `--without-image` and `--without-wheel` leave out what a machine without docker or Python cannot build.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const clone = mkdtempSync(join(tmpdir(), "release-"));
const has = (option) => process.argv.includes(option);

function run(title, program, ...words) {
  console.log(`== ${title}`);
  const shell = process.platform === "win32" && program === "npm";
  return execFileSync(program, words, {
    cwd: clone,
    shell,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
}

try {
  run("A clone of the last commit", "git", "clone", "--quiet", root, ".");
  run("Dependencies", "npm", "ci", "--no-audit", "--no-fund");
  const address = "https://github.com/example/source-contact-intelligence";
  run("The addresses of the repository", "node", "scripts/fill-addresses.js", address, `v${version}`);
  run("The build", "npm", "run", "build");
  console.log(run("The package", "npm", "publish", "--dry-run", "--access", "public"));
  const { components } = JSON.parse(run("The bill of materials", "node", "scripts/sbom.js"));
  console.log(components.map(({ name, version: its }) => `${name} ${its}`).join(", "));
  if (!has("--without-image")) console.log(run("The image", "node", "scripts/image.js"));
  if (!has("--without-wheel")) console.log(run("The wheel", "node", "scripts/wheel.js"));
  console.log("The release would work");
} finally {
  rmSync(clone, { recursive: true, force: true });
}
