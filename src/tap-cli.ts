import {
  answerOf,
  type Command,
  LOG_LEVEL,
  openParser,
  refuseTwoReaders,
  refuseTwoStates,
  STATE,
  STATE_FILE,
  textFlag,
} from "./cli.ts";
import type { TapOptions } from "./commands/tap-options.ts";

const TAP_FLAGS = {
  config: { alias: "c", ...textFlag("config file (- is stdin, ENV the environment)") },
  discover: { alias: "d", type: "boolean", describe: "print the catalog of streams" },
  catalog: { type: "string", describe: "streams and fields to read; default: all" },
  properties: { alias: "p", ...textFlag("older name of --catalog") },
  state: { alias: "s", ...STATE },
  "state-file": STATE_FILE,
  about: { type: "boolean", describe: "describe this tap" },
  format: {
    choices: ["text", "json", "markdown", "meltano", "meltano-hub"] as const,
    describe: "form of --about; default: text",
  },
  test: { type: "string", describe: "read one record of each stream; buys nothing" },
  "log-level": LOG_LEVEL,
} as const;

const EXAMPLES = [
  "Examples:",
  "  # list the streams and their fields",
  "  tap-contact-intelligence --config config.json --discover > catalog.json",
  "  # read what the catalog selects",
  "  tap-contact-intelligence --config config.json --catalog catalog.json \\\n    | target-jsonl",
].join("\n");

/**
 * Parses the Singer flags. Orchestrators put flags together, so that flags which a mode has no use for are harmless.
 * Throws UsageError.
 */
export async function parseTapCommand(args: readonly string[], version: string): Promise<Command> {
  let options: TapOptions | undefined;
  const parser = (await openParser("tap-contact-intelligence", version, ["config", "c"]))
    .usage("$0 --config FILE [--catalog FILE] [--state FILE]")
    .epilogue(EXAMPLES)
    .command("$0", false, TAP_FLAGS, ({ config, catalog, properties, format, ...flags }) => {
      // Repeatable; as a list the parser would not take a dash for it.
      const [configs, mode] = [[config ?? []].flat(), modeOf(flags)];
      options = { ...flags, mode, configs, catalog: catalog ?? properties, format: format ?? "text" };
    });
  const text = await answerOf(parser, args);
  if (options === undefined) return { kind: "text", text };
  refuseTwoStates(options);
  refuseTwoReaders(...options.configs, options.catalog, options.state);
  return { kind: "tap", ...options };
}

/** Meltano adds `--discover` to whatever else it says, so it comes first. */
function modeOf({ discover, about, test }: Readonly<Record<string, unknown>>): TapOptions["mode"] {
  if (discover === true) return "discover";
  if (about === true) return "about";
  return test === undefined ? "sync" : "test";
}
