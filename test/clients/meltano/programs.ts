import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { docBlock } from "../../support/docs.ts";
import { ROOT, succeed } from "../../support/run.ts";

const CACHE = join(ROOT, ".cache");

/** What the page's pip installs. */
const packagesOf = (command: string): readonly string[] =>
  /^pip install (.*)$/m.exec(docBlock("docs/meltano.md", "sh", command))?.[1]?.split(" ") ?? [];

/** The programs that the suite runs, each in a virtual environment of its own. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  // As docs/meltano.md installs them.
  meltano: packagesOf("pip install meltano"),
  "target-jsonl": packagesOf("pip install target-jsonl"),
  "target-csv": ["meltanolabs-target-csv==0.5.0"],
  "target-postgres": ["meltanolabs-target-postgres==0.8.1"],
  "target-stitch": ["target-stitch==4.0.3"],
  "singer-tools": ["singer-tools==0.4.1"],
  "singer-sdk": ["singer-sdk[testing]==0.54.9"],
};

const venv = (name: string): string => join(CACHE, "venvs", name);

/** A program out of one of the virtual environments. */
export const program = (name: string, executable = name): string => join(venv(name), "bin", executable);

/** A PATH on which the tap, and Meltano and the targets or what else is named, are found. */
export function pathWithPrograms(
  names: readonly string[] = ["meltano", "target-jsonl", "target-csv", "target-postgres"],
): string {
  const bin = join(CACHE, "bin");
  mkdirSync(bin, { recursive: true });
  for (const name of ["tap-contact-intelligence", "source-contact-intelligence"]) {
    rmSync(join(bin, name), { force: true });
    symlinkSync(join(ROOT, "dist", `${name}.js`), join(bin, name));
  }
  const venvs = names.map((name) => join(venv(name), "bin"));
  return [bin, ...venvs, process.env["PATH"]].join(delimiter);
}

/** Installs what is missing, with uv, which scripts/clients.js puts on the PATH; each program is installed whole or again. */
export async function installPrograms(): Promise<void> {
  for (const [name, pins] of Object.entries(PROGRAMS)) {
    const done = join(venv(name), pins.join(" ").replaceAll(/[^\w.=-]/g, "_"));
    if (existsSync(done)) continue;
    rmSync(venv(name), { recursive: true, force: true });
    await succeed("uv", ["venv", "--quiet", "--seed", venv(name)]);
    await succeed("uv", ["pip", "install", "--quiet", "--python", venv(name), ...pins]);
    writeFileSync(done, "");
  }
}
