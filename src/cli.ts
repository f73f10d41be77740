import type { Argv } from "yargs";
import type { ReadOptions } from "./commands/read.ts";
import type { SandboxCommand } from "./commands/sandbox.ts";
import type { TapOptions } from "./commands/tap-options.ts";
import { UsageError } from "./errors.ts";

/** What a command line asks for. */
export type Command =
  | { readonly kind: "spec" }
  | { readonly kind: "check" | "discover"; readonly config: string | undefined }
  | ({ readonly kind: "read" } & ReadOptions)
  | ({ readonly kind: "sandbox" } & SandboxCommand)
  | { readonly kind: "demo" }
  | ({ readonly kind: "tap" } & TapOptions)
  /** Help or the version were asked for, and are the whole answer. */
  | { readonly kind: "text"; readonly text: string };

const CONFIG = {
  type: "string",
  requiresArg: true,
  describe: "config file (JSON); may be left out if the environment says all",
} as const;

const SPEC: Command = { kind: "spec" };

/** Parses the Airbyte words. Throws UsageError. */
export async function parseCommand(args: readonly string[], version: string): Promise<Command> {
  const quick = args.length === 1 && args[0] === "spec" ? SPEC : quickCommand(args, version);
  if (quick !== undefined) return quick;
  let command: Command | undefined;
  const choose = (chosen: Command): void => {
    command = chosen;
  };
  const parser = commands(
    await openParser("source-contact-intelligence", version, ["stream", "fault"]),
    choose,
  )
    .demandCommand(1, 1, "Say what to do", "Say one thing to do")
    .recommendCommands()
    .epilogue("Try all of it without an account: source-contact-intelligence demo");
  const text = await answerOf(parser, args);
  return command ?? { kind: "text", text };
}

/** Command lines of one word that platforms and scripts ask for alone: loading yargs would take most of their time. */
export function quickCommand(args: readonly string[], version: string): Command | undefined {
  if (args.length !== 1) return undefined;
  return args[0] === "--version" ? { kind: "text", text: version } : undefined;
}

/** A parser that neither prints nor exits: `answerOf` runs it. Of a flag that is given twice the last one counts. */
export async function openParser(
  name: string,
  version: string,
  repeatable: readonly string[],
): Promise<Argv> {
  const { default: yargs } = await import("yargs");
  return yargs()
    .scriptName(name)
    .version(version)
    .help()
    .strict()
    .middleware((flags) => keepLast(flags, ["_", ...repeatable]))
    .exitProcess(false)
    .wrap(100);
}

function keepLast(flags: Record<string, unknown>, lists: readonly string[]): void {
  for (const [name, value] of Object.entries(flags)) {
    if (Array.isArray(value) && !lists.includes(name)) flags[name] = value.at(-1);
  }
}

export const STATE_FILE = {
  type: "string",
  requiresArg: true,
  describe: "state, read if the file is there and replaced after each checkpoint",
} as const;

export const LOG_LEVEL = {
  choices: ["debug", "info", "warning", "error", "critical"] as const,
  describe: "say nothing below this on stderr",
} as const;

function commands(parser: Argv, choose: (command: Command) => void): Argv {
  return parser
    .command("spec", "print how this connector is configured", {}, () => choose(SPEC))
    .command(
      "check",
      "say whether the config works and what its key can read",
      { config: CONFIG },
      ({ config }) => choose({ kind: "check", config }),
    )
    .command("discover", "print the catalog of streams", { config: CONFIG }, ({ config }) =>
      choose({ kind: "discover", config }),
    )
    .command(
      "read",
      "read streams and write them to stdout",
      {
        config: CONFIG,
        catalog: {
          type: "string",
          describe: "configured catalog (default: every stream that the key can read)",
        },
        state: { type: "string", describe: "state to go on from" },
        stream: {
          type: "string",
          array: true,
          requiresArg: true,
          nargs: 1,
          describe: "only this stream; repeatable",
        },
        format: {
          choices: ["airbyte", "jsonl"] as const,
          default: "airbyte" as const,
          describe: "what stdout speaks",
        },
        "state-file": STATE_FILE,
        "log-level": LOG_LEVEL,
      },
      ({ config, catalog, state, stream, format, stateFile, logLevel }) =>
        choose(
          readCommand({
            config,
            catalog: named(catalog),
            state: named(state),
            streams: stream ?? [],
            format,
            stateFile: named(stateFile),
            logLevel,
          }),
        ),
    )
    .command(
      "sandbox",
      "run the bundled stand-in for the service in the foreground",
      {
        port: { type: "number", default: 8080, describe: "where to listen on 127.0.0.1" },
        people: { type: "number", default: 1000, describe: "how many people it tracks" },
        seed: { type: "number", default: 1, describe: "other seeds, other data" },
        plan: {
          choices: ["enterprise", "agency"] as const,
          default: "enterprise" as const,
          describe: "plan of its key: enterprise lists people, agency checks e-mails",
        },
        fault: {
          type: "string",
          array: true,
          requiresArg: true,
          nargs: 1,
          describe: "what goes wrong; repeatable",
        },
      },
      ({ port, people, seed, plan, fault }) =>
        choose({ kind: "sandbox", port, people, seed, plan, faults: fault ?? [] }),
    )
    .command("demo", "show a whole sync against the sandbox, without an account", {}, () =>
      choose({ kind: "demo" }),
    );
}

type ReadCommand = Extract<Command, { kind: "read" }>;

function readCommand(options: Omit<ReadCommand, "kind">): Command {
  if (options.format === "jsonl" && options.streams.length !== 1) {
    throw new UsageError("--format jsonl writes the bare records of one stream: name it with --stream");
  }
  refuseTwoStates(options);
  return { kind: "read", ...options };
}

export function refuseTwoStates(options: Pick<ReadCommand, "state" | "stateFile">): void {
  if (options.state === undefined || options.stateFile === undefined) return;
  throw new UsageError("--state and --state-file both say where to go on from: give one of them");
}

/** Platforms name no file by an empty text. */
export const named = (path: string | undefined): string | undefined => (path === "" ? undefined : path);

/** Runs the parser; what it has to say itself (help, version) is returned, what it complains of is thrown. */
export async function answerOf(parser: Argv, args: readonly string[]): Promise<string> {
  return await new Promise((resolve, reject) => {
    parser
      .fail((message, error) => reject(usageError(message, error)))
      .parseAsync([...args], {}, (error, _argv, output) => {
        if (error) reject(usageError(error.message, error));
        else resolve(output);
      })
      .catch(reject);
  });
}

/** Parsing does nothing but parse, so whatever it throws is about the words. */
function usageError(message: string, error: Error | undefined): UsageError {
  return error instanceof UsageError ? error : new UsageError(message || error?.message);
}
