// Compiles src/ into dist/ and makes what package.json's "bin" points at executable.
import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, rmSync } from "node:fs";

const root = new URL("..", import.meta.url);
rmSync(new URL("dist", root), { recursive: true, force: true });
execFileSync("npx", ["--no-install", "tsc", "-p", "tsconfig.json"], { cwd: root, stdio: "inherit" });
const { bin } = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));
for (const file of Object.values(bin)) chmodSync(new URL(file, root), 0o755);
