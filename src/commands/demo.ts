import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { type Sandbox, startSandbox } from "../sandbox/server.ts";
import { check } from "./check.ts";
import { discover } from "./discover.ts";
import { read } from "./read.ts";
import { spec } from "./spec.ts";
import type { Process } from "./world.ts";

const PEOPLE = 8_400;
const WINDOW_ROWS = 4_000;
const RECHECKED = 40;
const ARRIVED = 12;
const REQUESTS_PER_MINUTE = 600;
/** Columns of a terminal that an abridged message may take. */
const WIDTH = 110;
const BULK: ReadonlySet<string> = new Set(["RECORD", "TRACE", "STATE"]);

type Message = Readonly<Record<string, unknown>> & { readonly type: string };

/** Shows a person a whole sync, step by step, against a sandbox of its own: what is run and what it says, abridged. */
export async function demo(world: Process): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "contact-intelligence-"));
  const sandbox = await startSandbox({ people: PEOPLE, requestsPerMinute: REQUESTS_PER_MINUTE });
  try {
    return await new Demo(sandbox, world, folder).run();
  } finally {
    await sandbox.close();
    await rm(folder, { recursive: true });
  }
}

class Demo {
  readonly #sandbox: Sandbox;
  readonly #world: Process;
  readonly #folder: string;

  constructor(sandbox: Sandbox, world: Process, folder: string) {
    this.#sandbox = sandbox;
    this.#world = world;
    this.#folder = folder;
  }

  async run(): Promise<number> {
    this.#say(
      "A whole sync against the bundled sandbox: a stand-in for the service, in this process, no account needed.",
    );
    await this.#step("spec", (world) => spec(world), describeSpec);
    await this.#step("check --config config.json", (world) => check(undefined, world), describeStatus);
    const [catalog] = await this.#step(
      "discover --config config.json",
      (world) => discover(undefined, world),
      describeCatalog,
    );
    const catalogFile = await this.#save("catalog.json", configure(catalog));
    const before = this.#sandbox.requests.length;
    const first = await this.#read(
      "read --config config.json --catalog catalog.json",
      catalogFile,
      undefined,
    );
    this.#sandbox.recheck(RECHECKED);
    this.#sandbox.arrive(ARRIVED);
    this.#say(`\nTime passes at the service: ${RECHECKED} people are checked again, ${ARRIVED} are new.`);
    const states = first.filter(({ type }) => type === "STATE").map((state) => JSON.stringify(state));
    const stateFile = await this.#save("state.json", states.join("\n"));
    const second = await this.#read(
      "read --config config.json --catalog catalog.json --state state.json",
      catalogFile,
      stateFile,
    );
    const whole = [first, second].every((messages) => !messages.some(isFailure));
    this.#say(
      `\n${this.#sum([...first, ...second], before)}.${whole ? "" : " Something went wrong, see above."}`,
    );
    return whole ? 0 : 1;
  }

  async #read(words: string, catalog: string, state: string | undefined): Promise<readonly Message[]> {
    const before = this.#sandbox.requests.length;
    const options = {
      config: undefined,
      catalog,
      state,
      streams: [],
      format: "airbyte" as const,
      stateFile: undefined,
      logLevel: undefined,
    };
    const messages = await this.#step(words, (world) => read(options, world), describeRead);
    this.#say(`  ${this.#sum(messages, before)}`);
    return messages;
  }

  /** Runs one command as a shell would and tells what it said. */
  async #step(
    words: string,
    command: (world: Process) => Promise<number>,
    describe: (messages: readonly Message[]) => readonly string[],
  ): Promise<readonly Message[]> {
    this.#say(`\n$ source-contact-intelligence ${words}`);
    const { url, key } = this.#sandbox;
    const output = new Captured();
    await command({
      ...this.#world,
      stdout: output,
      environment: {
        CONTACT_INTELLIGENCE_BASE_URL: url,
        CONTACT_INTELLIGENCE_API_KEY: key,
        CONTACT_INTELLIGENCE_MAX_WINDOW_ROWS: String(WINDOW_ROWS),
        CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE: String(REQUESTS_PER_MINUTE),
      },
    });
    const messages = output.messages();
    for (const line of describe(messages)) this.#say(`  ${line}`);
    return messages;
  }

  #sum(messages: readonly Message[], since: number): string {
    const requests = this.#sandbox.requests.slice(since);
    const rows = messages.filter(({ type }) => type === "RECORD").length;
    const windows = requests.filter(({ path }) => path.endsWith("/stream")).length;
    return [plural(rows, "row"), plural(windows, "window"), plural(requests.length, "request")].join(", ");
  }

  async #save(name: string, text: string): Promise<string> {
    const file = join(this.#folder, name);
    await writeFile(file, text);
    return file;
  }

  #say(line: string): void {
    this.#world.stdout.write(`${line}\n`);
  }
}

/** Keeps what a command writes. */
class Captured extends Writable {
  readonly #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  messages(): readonly Message[] {
    const lines = Buffer.concat(this.#chunks).toString("utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
  }
}

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

/** Asks for every stream, incremental where it can be, as a platform would. */
function configure(catalog: Message | undefined): string {
  const streams = streamsOf(catalog).map((stream) => ({
    stream,
    sync_mode: stream.supported_sync_modes.at(-1),
    destination_sync_mode: "append_dedup",
  }));
  return JSON.stringify({ streams });
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

const count = (number: number): string => number.toLocaleString("en-US");

const plural = (number: number, noun: string): string => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

const abridge = (line: string): string => (line.length > WIDTH ? `${line.slice(0, WIDTH - 2)} …` : line);
