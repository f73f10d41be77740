import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { keyOf, type Sandbox, startSandbox } from "./server.ts";

/** The connector, beside this file's folder in dist/. */
const CONNECTOR = fileURLToPath(new URL("../source-contact-intelligence.js", import.meta.url));
/** The port that the sandbox listens on when none is named. */
const PORT = 8080;
const PEOPLE = 8_400;
const RECHECKED = 40;
const ARRIVED = 12;
/** What the config asks for, because nobody wants to wait in a demo. */
const REQUESTS_PER_MINUTE = 600;
/** Columns of a terminal that an abridged message may take. */
const WIDTH = 110;
const BULK: ReadonlySet<string> = new Set(["RECORD", "TRACE", "STATE"]);

/** What the demo takes of its process. */
type Surroundings = {
  readonly stdout: NodeJS.WritableStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** The program that runs the connector. */
  readonly node: string;
};

type Message = Readonly<Record<string, unknown>> & { readonly type: string };

/** Shows a person two syncs, step by step, against a sandbox of its own: the commands, and what they say, abridged. */
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
  /** How a person here starts a command: from a clone it is not on the path. */
  readonly #command: (name: string) => string;

  constructor(sandbox: Sandbox, surroundings: Surroundings, folder: string) {
    this.#sandbox = sandbox;
    this.#surroundings = surroundings;
    this.#folder = folder;
    const isClone = surroundings.environment["npm_lifecycle_event"] === "demo";
    this.#command = (name) => (isClone ? `node dist/${name}.js` : name.replace(/.*\//, ""));
  }

  get #connector(): string {
    return this.#command("source-contact-intelligence");
  }

  async run(): Promise<number> {
    const { url, key } = this.#sandbox;
    const config = JSON.stringify({ base_url: url, api_key: key, requests_per_minute: REQUESTS_PER_MINUTE });
    await writeFile(join(this.#folder, "config.json"), config);
    this.#say("Two syncs against the bundled sandbox, a stand-in for the service. No account is needed.");
    this.#say(`The sandbox listens at ${url}. The file config.json holds:\n  ${config}`);
    await this.#step("spec", describeSpec);
    await this.#step("check --config config.json", describeStatus);
    await this.#step("discover --config config.json", describeCatalog);
    const before = this.#sandbox.requests.length;
    const first = await this.#read();
    this.#sandbox.recheck(RECHECKED);
    this.#sandbox.arrive(ARRIVED);
    this.#say(`\nTime passes at the service: ${RECHECKED} people are checked again, ${ARRIVED} are new.`);
    const second = await this.#read();
    const messages = [...first, ...second];
    const failed = messages.some(isFailure);
    this.#say(`\n${this.#sum(messages, before)} in all.${failed ? " Something went wrong, see above." : ""}`);
    this.#say(this.#nextSteps());
    return failed ? 1 : 0;
  }

  /** What a person can type now. */
  #nextSteps(): string {
    const { port } = this.#sandbox;
    const sandbox = this.#command("sandbox/contact-intelligence-sandbox");
    return [
      "\nWhat to do next:",
      "  1. Try it yourself. Write the config above to config.json and start the sandbox in another terminal:",
      `     $ ${sandbox} --people ${PEOPLE}${port === PORT ? "" : ` --port ${port}`}`,
      `     $ ${this.#connector} read --config config.json --stream people --format jsonl`,
      "  2. Break the service, and see that no row is lost:",
      `     $ ${sandbox} --help`,
      "  3. With an account, put its address and its key into config.json:",
      `     $ ${this.#connector} check --config config.json`,
      "  4. Connect it to Airbyte, Meltano, cron or a notebook: see README.md.",
    ].join("\n");
  }

  async #read(): Promise<readonly Message[]> {
    const before = this.#sandbox.requests.length;
    const messages = await this.#step("read --config config.json --state-file state.json", describeRead);
    this.#say(`  ${this.#sum(messages, before)}`);
    return messages;
  }

  /** Runs one command as a shell would and tells what it said. */
  async #step(
    words: string,
    describe: (messages: readonly Message[]) => readonly string[],
  ): Promise<readonly Message[]> {
    this.#say(`\n$ ${this.#connector} ${words}`);
    const messages = await this.#messagesOf(words.split(" "));
    for (const line of describe(messages)) this.#say(`  ${line}`);
    return messages;
  }

  /** Runs the connector in the demo's folder, without the settings that this machine has for it. */
  async #messagesOf(words: readonly string[]): Promise<readonly Message[]> {
    const { environment, signal, node } = this.#surroundings;
    const kept = Object.entries(environment).filter(([name]) => !name.startsWith("CONTACT_INTELLIGENCE_"));
    const child = spawn(node, [CONNECTOR, ...words], {
      cwd: this.#folder,
      env: Object.fromEntries(kept),
      stdio: ["ignore", "pipe", "inherit"],
      signal,
    });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
    const lines = Buffer.concat(chunks).toString("utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
  }

  #sum(messages: readonly Message[], since: number): string {
    const requests = this.#sandbox.requests.slice(since);
    const rows = messages.filter(({ type }) => type === "RECORD").length;
    const windows = requests.filter(({ path }) => path.endsWith("/stream")).length;
    return [plural(rows, "row"), plural(windows, "window"), plural(requests.length, "request")].join(", ");
  }

  #say(line: string): void {
    this.#surroundings.stdout.write(`${line}\n`);
  }
}

const plural = (count: number, noun: string): string =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function describeSpec([message]: readonly Message[]): readonly string[] {
  const { connectionSpecification } = (message?.["spec"] ?? {}) as { connectionSpecification?: Settings };
  const settings = Object.keys(connectionSpecification?.properties ?? {});
  return [
    `SPEC of ${settings.length} settings, of which ${(connectionSpecification?.required ?? []).join(" and ")} must be given:`,
    abridge(settings.join(", ")),
  ];
}

type Settings = {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
};

function describeStatus([message]: readonly Message[]): readonly string[] {
  const { status, message: text } = (message?.["connectionStatus"] ?? {}) as {
    status?: string;
    message?: string;
  };
  return [`CONNECTION_STATUS ${status}: ${text}`];
}

function describeCatalog([message]: readonly Message[]): readonly string[] {
  return [
    "CATALOG",
    ...streamsOf(message).map(({ name, json_schema, supported_sync_modes, source_defined_primary_key }) => {
      const fields = Object.keys(json_schema.properties);
      const key = source_defined_primary_key.flat().join(", ");
      return abridge(
        `  ${name.padEnd(10)} key ${key}, ${supported_sync_modes.join(" or ")}, ${fields.length} fields: ${fields.join(", ")}`,
      );
    }),
  ];
}

type Stream = {
  readonly name: string;
  readonly json_schema: { readonly properties: Readonly<Record<string, unknown>> };
  readonly supported_sync_modes: readonly string[];
  readonly source_defined_primary_key: readonly (readonly string[])[];
};

function streamsOf(message: Message | undefined): readonly Stream[] {
  const { streams = [] } = (message?.["catalog"] ?? {}) as { streams?: readonly Stream[] };
  return streams;
}

/** The first message of each kind, and for the bulk how many there were. */
function describeRead(messages: readonly Message[]): readonly string[] {
  const names = [...new Set(messages.map(streamOf).filter((name) => name !== undefined))];
  const others = messages.filter(({ type }) => !BULK.has(type));
  return [
    ...names.flatMap((name) =>
      describeStream(
        name,
        messages.filter((message) => streamOf(message) === name),
      ),
    ),
    ...[...others, ...messages.filter(isFailure)].map((message) => abridge(JSON.stringify(message))),
  ];
}

function describeStream(name: string, messages: readonly Message[]): readonly string[] {
  const records = messages.filter(({ type }) => type === "RECORD");
  const states = messages.filter(({ type }) => type === "STATE");
  const status = messages.map(statusOf).findLast((word) => word !== undefined);
  return [
    `${name}: ${plural(records.length, "RECORD")}, ${plural(states.length, "STATE")}, ${status}`,
    ...records.slice(0, 1).map((message) => abridge(`  first RECORD  ${JSON.stringify(dataOf(message))}`)),
    ...states.slice(-1).map((message) => abridge(`  last STATE    ${JSON.stringify(stateOf(message))}`)),
  ];
}

const dataOf = (message: Message): unknown => (message as { record?: { data: unknown } }).record?.data;

function stateOf(message: Message): unknown {
  return (message as { state?: { stream: { stream_state: unknown } } }).state?.stream.stream_state;
}

function streamOf(message: Message): string | undefined {
  const { record, state, trace } = message as {
    record?: { stream: string };
    state?: { stream: Described };
    trace?: { stream_status?: Described };
  };
  return record?.stream ?? (state?.stream ?? trace?.stream_status)?.stream_descriptor.name;
}

type Described = { readonly stream_descriptor: { readonly name: string } };

function statusOf(message: Message): string | undefined {
  const { trace } = message as { trace?: { stream_status?: { status: string } } };
  return trace?.stream_status?.status;
}

function isFailure(message: Message): boolean {
  return (message as { trace?: { type: string } }).trace?.type === "ERROR";
}

const abridge = (line: string): string => (line.length > WIDTH ? `${line.slice(0, WIDTH - 2)} …` : line);
