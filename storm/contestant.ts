import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CONTESTANTS = join(ROOT, "storm", "contestants");
const CACHE = join(ROOT, ".cache", "storm");

/** What stands in a contestant's `contestant.json`. */
type Description = {
  /** Its place in the tables. */
  readonly order: number;
  readonly name: string;
  /** In two or three words, for the head of a table. */
  readonly reads: string;
  /** What was chosen, and why its authors would. */
  readonly choice: string;
  readonly runtime: "python" | "node" | "bash";
  /** Programs that must be on the path. */
  readonly needs?: readonly string[];
  /** `files`: rows are JSON lines in files below `rows`, and the contestant keeps its state itself. */
  readonly speaks: "airbyte" | "singer" | "files";
  readonly rows?: string;
  /** The field of a delivered row that holds discoveredAt, if it has another name. */
  readonly cursor?: string;
  /** Lines of stderr that warn somebody; Airbyte's messages say it by their level. */
  readonly complaint?: string;
  /** The program and its arguments, run in a folder with config.json and catalog.json. */
  readonly command: readonly string[];
  /** What is added once a state.json is there. */
  readonly resume?: readonly string[];
  /** Settings that it takes of base_url, api_key and start_date; default all. */
  readonly settings?: readonly string[];
};

export type Contestant = Description & {
  /** The name of its folder. */
  readonly id: string;
  /** Its libraries, with their versions. */
  readonly versions: readonly string[];
};

/** Every folder in storm/contestants. */
export function allContestants(): readonly Contestant[] {
  return readdirSync(CONTESTANTS)
    .map((id) => {
      const text = readFileSync(join(CONTESTANTS, id, "contestant.json"), "utf8");
      return { ...(JSON.parse(text) as Description), id, versions: versionsOf(id) };
    })
    .sort((a, b) => a.order - b.order);
}

function pinsOf(id: string): { readonly file: string; readonly text: string } | undefined {
  const file = ["requirements.txt", "package.json"].find((name) => existsSync(join(CONTESTANTS, id, name)));
  return file === undefined ? undefined : { file, text: readFileSync(join(CONTESTANTS, id, file), "utf8") };
}

function versionsOf(id: string): readonly string[] {
  const pins = pinsOf(id);
  if (pins === undefined) return [];
  if (pins.file === "requirements.txt")
    return pins.text
      .trim()
      .split("\n")
      .map((line) => line.replace("==", " "));
  const { dependencies } = JSON.parse(pins.text) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  return Object.entries(dependencies).map(([name, version]) => `${name} ${version}`);
}

/** Installs what a contestant pins into a folder of the cache, if that changed. Returns why it cannot take part, if so. */
export async function install({ id, needs = [], runtime }: Contestant): Promise<string | undefined> {
  const missing = needs.filter((program) => !has(program));
  if (missing.length > 0)
    return `${missing.join(" and ")} not on the path (apt-get install ${missing.join(" ")})`;
  const python = runtime === "python" ? PYTHONS.find(isFit) : undefined;
  if (runtime === "python" && python === undefined) return "no Python 3.10 to 3.13 on the path";
  const pins = pinsOf(id);
  if (pins === undefined) return undefined;
  const home = join(CACHE, id);
  const stamp = join(home, "installed");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === pins.text) return undefined;
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  try {
    if (python !== undefined) {
      await execute(python, ["-m", "venv", home]);
      const quiet = ["--quiet", "--disable-pip-version-check"];
      await execute(binOf(id, "python"), [
        "-m",
        "pip",
        "install",
        ...quiet,
        "-r",
        join(CONTESTANTS, id, pins.file),
      ]);
    } else {
      writeFileSync(join(home, "package.json"), pins.text);
      await execute("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", home]);
    }
  } catch (error) {
    return `its packages cannot be installed: ${(error as Error).message.split("\n").at(-2)}`;
  }
  writeFileSync(stamp, pins.text);
  return undefined;
}

const execute = promisify(execFile);
const has = (program: string): boolean => spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;

const PYTHONS = [process.env["PYTHON"] ?? "python3.12", "python3.12", "python3.11", "python3.10", "python3"];
const isFit = (program: string): boolean => {
  const question = "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))";
  return spawnSync(program, ["-c", question], { stdio: "ignore" }).status === 0;
};
const binOf = (id: string, program: string): string => join(CACHE, id, "bin", program);

/** The command line of one run. */
export function commandOf(
  { id, command, resume = [] }: Contestant,
  hasState: boolean,
): { readonly program: string; readonly args: readonly string[]; readonly env: NodeJS.ProcessEnv } {
  const places: Readonly<Record<string, string>> = {
    root: ROOT.replace(/\/$/, ""),
    folder: join(CONTESTANTS, id),
    bin: join(CACHE, id, "bin"),
    node: process.execPath,
  };
  const [program = "", ...args] = [...command, ...(hasState ? resume : [])].map((word) =>
    word.replace(/\{(\w+)\}/g, (_, name: string) => places[name] ?? ""),
  );
  return { program, args, env: { ...bare(), STORM_PACKAGES: join(CACHE, id) } };
}

/** The environment without settings of this project, proxies or of npm. */
function bare(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|contact_intelligence_|.*_proxy$|node_options$)/i.test(name),
  );
  return Object.fromEntries([
    ...kept,
    ["PYTHONDONTWRITEBYTECODE", "1"],
    ["PYTHONUNBUFFERED", "1"],
    ["TZ", "UTC"],
  ]);
}
