import type { Argv } from "yargs";

/** What a command line asks for. */
export type Command =
  | { readonly kind: "spec" }
  | { readonly kind: "check" | "discover"; readonly config: string | undefined }
  | {
      readonly kind: "read";
      readonly config: string | undefined;
      readonly catalog: string | undefined;
      readonly state: string | undefined;
      readonly streams: readonly string[];
      readonly format: "airbyte" | "jsonl";
    }
  | {
      readonly kind: "sandbox";
      readonly port: number;
      readonly people: number;
      readonly seed: number;
      readonly faults: readonly string[];
    }
  | { readonly kind: "demo" }
  /** Help or the version were asked for, and are the whole answer. */
  | { readonly kind: "text"; readonly text: string };

/** A command line that cannot be obeyed. */
export class UsageError extends Error {}

const CONFIG = {
  type: "string",
  requiresArg: true,
  describe: "config file (JSON); may be left out if the environment says all",
} as const;

/** Parses the Airbyte words. Throws UsageError. */
export async function parseCommand(args: readonly string[], version: string): Promise<Command> {
  const quick = quickCommand(args, version);
  if (quick !== undefined) return quick;
  const { default: yargs } = await import("yargs");
  let command: Command | undefined;
  const choose = (chosen: Command): void => {
    command = chosen;
  };
  const parser = commands(yargs().scriptName("source-contact-intelligence"), choose)
    .version(version)
    .help()
    .strict()
    .demandCommand(1, 1, "Say what to do", "Say one thing to do")
    .recommendCommands()
    .parserConfiguration({ "duplicate-arguments-array": false })
    .exitProcess(false)
    .wrap(100)
    .epilogue("Try all of it without an account: source-contact-intelligence demo");
  const text = await answerOf(parser, args);
  return command ?? { kind: "text", text };
}

/** Command lines of one word that platforms and scripts ask for alone: loading yargs would take most of their time. */
function quickCommand(args: readonly string[], version: string): Command | undefined {
  if (args.length !== 1) return undefined;
  if (args[0] === "spec") return { kind: "spec" };
  return args[0] === "--version" ? { kind: "text", text: version } : undefined;
}

function commands(parser: Argv, choose: (command: Command) => void): Argv {
  return parser
    .command("spec", "print how this connector is configured", {}, () => choose({ kind: "spec" }))
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
      },
      ({ config, catalog, state, stream, format }) =>
        choose(
          readCommand({
            config,
            catalog: named(catalog),
            state: named(state),
            streams: stream ?? [],
            format,
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
        fault: {
          type: "string",
          array: true,
          requiresArg: true,
          nargs: 1,
          describe: "what goes wrong; repeatable",
        },
      },
      ({ port, people, seed, fault }) => choose({ kind: "sandbox", port, people, seed, faults: fault ?? [] }),
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
  return { kind: "read", ...options };
}

/** Platforms name no file by an empty text. */
const named = (path: string | undefined): string | undefined => (path === "" ? undefined : path);

/** Runs the parser; what it has to say itself (help, version) is returned, what it complains of is thrown. */
async function answerOf(parser: Argv, args: readonly string[]): Promise<string> {
  return await new Promise((resolve, reject) => {
    parser
      .fail((message, error) => reject(error ?? new UsageError(message)))
      .parseAsync([...args], {}, (error, _argv, output) => {
        if (error) reject(error instanceof UsageError ? error : new UsageError(error.message));
        else resolve(output);
      })
      .catch(reject);
  });
}
