// Builds the Python wheel into packaging/python/dist and prints its path. Needs Python 3.9 or later with pip (PYTHON names another).
import "./prepare.js";
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const project = join(root, "packaging/python");
const program = join(project, "source_contact_intelligence/program");
const wheels = join(project, "dist");

for (const folder of [program, wheels]) rmSync(folder, { recursive: true, force: true });
for (const name of ["dist", "schemas", "meltano", "spec.json", "package.json", "LICENSE"])
  cpSync(join(root, name), join(program, name), { recursive: true });

writeFileSync(
  join(project, "sbom.cdx.json"),
  execFileSync(process.execPath, [join(root, "scripts/sbom.js")], { stdio: ["ignore", "pipe", "inherit"] }),
);

const python = process.env.PYTHON ?? (process.platform === "win32" ? "python" : "python3");
const words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, project];
execFileSync(python, words, { stdio: ["ignore", process.stderr, process.stderr] });
console.log(join(wheels, readdirSync(wheels)[0]));
