import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { keyOf, type Sandbox, startSandbox } from "./server.ts";

/** The connector, next to this file's folder in dist/. */
const CONNECTOR = fileURLToPath(new URL("../source-contact-intelligence.js", import.meta.url));
/** The port that the sandbox listens on when none is named. */
const PORT = 8080;
const PEOPLE = 3_000;
const RECHECKED = 40;
const ARRIVED = 12;
/** The fastest that a config may ask for, because the sandbox has no limit. */
const REQUESTS_PER_MINUTE = 6000;
/** Characters of a line without its indent. Some characters take two columns. */
const WIDTH = 97;
const WRAPPED = new RegExp(`(.{1,${WIDTH}})(?: +|$)`, "g");
const CUT = "end:times=always";

/** Lets a process write into a pipe what it writes at a terminal, except what it draws over. */
const AT_TERMINAL = [
  "--import",
  "data:text/javascript,const{stdout,stderr}=process;stdout.isTTY=stderr.isTTY=true",
];
const PLAIN = { CI: "true", NO_COLOR: "1" };

/** The script that many people write first. */
const scriptFor = ({ url, key }: Sandbox): string => `const url = "${url}/api/v1/public/people/stream";
const headers = { "X-API-Key": "${key}" };
const answer = await fetch(url, { headers });
if (!answer.ok) throw new Error(\`HTTP \${answer.status}\`);
console.log((await answer.text()).trimEnd().split("\\n").length, "people");`;

/** The parts of its process that the demo uses. */
type Surroundings = {
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** The program that runs the connector. */
  readonly node: string;
};

/** Shows a person how people come into files, and how a cut export is repaired, against a sandbox of its own. */
export async function demo(surroundings: Surroundings): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "contact-intelligence-")).catch(() => {
    throw new Error(`Cannot make a folder in "${tmpdir()}". Set TMPDIR to a folder that you may write to`);
  });
  const sandbox = await openSandbox();
  try {
    return await new Demo(sandbox, surroundings, folder).run();
  } finally {
    await sandbox.close();
    await rm(folder, { recursive: true });
  }
}

/** Listens where the sandbox's command does; on any free port if another program listens there. */
async function openSandbox(): Promise<Sandbox> {
  const options = { people: PEOPLE, key: keyOf(PEOPLE, 1) };
  try {
    return await startSandbox({ ...options, port: PORT });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return await startSandbox(options);
  }
}

class Demo {
  readonly #sandbox: Sandbox;
  readonly #surroundings: Surroundings;
  readonly #folder: string;
  #failed = false;

  constructor(sandbox: Sandbox, surroundings: Surroundings, folder: string) {
    this.#sandbox = sandbox;
    this.#surroundings = surroundings;
    this.#folder = folder;
  }

  async run(): Promise<number> {
    const { url, key, port } = this.#sandbox;
    const config = `{"base_url":"${url}","api_key":"${key}",\n "requests_per_minute":${REQUESTS_PER_MINUTE}}`;
    await writeFile(join(this.#folder, "config.json"), config);
    const script = scriptFor(this.#sandbox);
    await writeFile(join(this.#folder, "script.mjs"), script);
    this.#say(
      "This demo copies people into files. A stand-in plays the service, so you need no account.",
      "\n1. The file config.json has the address and the key of the service:",
      indented(config),
    );
    await this.#connector("check --config config.json");

    this.#say('\n2. Read everything into the folder "contacts":');
    await this.#connector("read --config config.json --output contacts");
    for (const [name, rows] of await this.#files("contacts/people")) {
      this.#show(`contacts/people/${name} has ${rows.length.toLocaleString("en")} rows:`);
      for (const row of rows.slice(0, 2)) this.#show(row);
    }

    this.#sandbox.recheck(RECHECKED);
    this.#sandbox.arrive(ARRIVED);
    this.#say(
      `\n3. Time passes. The service checks ${RECHECKED} people again and finds ${ARRIVED} new people.`,
      `The same command reads only these ${RECHECKED + ARRIVED}:`,
    );
    await this.#connector("read --config config.json --output contacts");

    this.#sandbox.fault(CUT);
    const people = this.#sandbox.people().length.toLocaleString("en");
    this.#say(
      "\n4. The service now ends each export after half of its rows, without an error.",
      `It has ${people} people. A script without checks gets half of them, and does not notice:`,
      indented(script),
    );
    await this.#command("node script.mjs", [join(this.#folder, "script.mjs")]);
    this.#say("The connector compares the rows with the service's count, and reads what is missing:");
    await this.#connector("read --config config.json --stream people --output copy");
    const rows = (await this.#files("copy/people")).flatMap(([, lines]) => lines);
    this.#show(`The files have ${rows.length.toLocaleString("en")} of ${people} people.`);

    this.#say(
      "\n5. Airbyte and Meltano start the same program and read its messages: SPEC (the settings),",
      "CATALOG (the streams), RECORD (a row), STATE (where the next run continues). For example:",
    );
    await this.#connector("discover --config config.json --json");
    if (this.#failed) this.#say("\nSomething went wrong, see above.");
    this.#say(...this.#nextSteps(port === PORT ? "" : ` --port ${port}`));
    return this.#failed ? 1 : 0;
  }

  /** The commands that a person can type now. */
  #nextSteps(portOption: string): readonly string[] {
    const connector = this.#typed("source-contact-intelligence");
    const sandbox = this.#typed("contact-intelligence-sandbox");
    return [
      "\nWhat to do next:",
      "- Break the stand-in yourself. Write the config of step 1 to config.json. Use two terminals:",
      `$ ${sandbox} --people ${PEOPLE}${portOption} --fault ${CUT}`,
      `$ ${connector} read --config config.json --output contacts`,
      `$ ${sandbox} --help faults  # all faults that it knows`,
      "- Read your own account. This command asks for its address and key, and writes config.json:",
      `$ ${connector} init`,
      "- Continue with DuckDB, a warehouse, cron, Airbyte or Meltano: see README.md.",
    ];
  }

  /** How a person here starts a program: from a clone it is not on the path. */
  #typed(name: string): string {
    const isClone = this.#surroundings.environment["npm_lifecycle_event"] === "demo";
    return isClone ? `node dist/${name.replace(/^contact/, "sandbox/contact")}.js` : name;
  }

  async #connector(words: string): Promise<void> {
    const args = [...AT_TERMINAL, CONNECTOR, ...words.split(" ")];
    await this.#command(`${this.#typed("source-contact-intelligence")} ${words}`, args);
  }

  /** Runs a command in the demo's folder, without the settings that this machine has, and shows what it writes. */
  async #command(typed: string, args: readonly string[]): Promise<void> {
    const { stdout, environment, signal, node } = this.#surroundings;
    this.#say(stdout.isTTY ? `\u001b[1m$ ${typed}\u001b[0m` : `$ ${typed}`);
    const kept = Object.entries(environment).filter(([name]) => !name.startsWith("CONTACT_INTELLIGENCE_"));
    const env = { ...Object.fromEntries(kept), ...PLAIN };
    const child = spawn(node, args, { cwd: this.#folder, env, stdio: ["ignore", "pipe", "pipe"], signal });
    for (const input of [child.stdout, child.stderr])
      createInterface({ input }).on("line", (line) => this.#show(line));
    let failure: unknown;
    child.on("error", (error) => {
      failure = error;
    });
    // Also after a signal the command may still write into the folder.
    const code = await new Promise((resolve) => child.on("close", resolve));
    if (failure !== undefined) throw failure;
    this.#failed ||= code !== 0;
  }

  /** The names of the files in a folder, with their lines. */
  async #files(folder: string): Promise<readonly (readonly [name: string, lines: readonly string[]])[]> {
    const names = (await readdir(join(this.#folder, folder))).sort();
    const texts = names.map((name) => readFile(join(this.#folder, folder, name), "utf8"));
    return (await Promise.all(texts)).map((text, nth) => [names[nth] ?? "", text.trimEnd().split("\n")]);
  }

  /** A long text continues in the next line; of long JSON the beginning is shown. */
  #show(line: string): void {
    const text = line.startsWith("{") && line.length > WIDTH ? `${line.slice(0, WIDTH - 6)} …` : line;
    this.#say(text.replaceAll(WRAPPED, "  $1\n").trimEnd());
  }

  #say(...lines: readonly string[]): void {
    this.#surroundings.stdout.write(`${lines.join("\n")}\n`);
  }
}

const indented = (text: string): string => text.replaceAll(/^/gm, "  ");
