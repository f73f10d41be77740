import {
  type AddCommand,
  type Command,
  choiceFlag,
  fileFlag,
  LOG_FORMAT,
  LOG_LEVEL,
  parseWords,
  STATES,
  textFlag,
} from "./cli.ts";

const TAP_FLAGS = {
  config: {
    ...textFlag("settings (-: stdin, ENV: variables); repeatable"),
    ...{ alias: "c", coerce: (value: string | readonly string[]) => [value].flat() },
  },
  discover: { alias: "d", type: "boolean", describe: "print the catalog" },
  catalog: fileFlag("streams and fields to read; default: all"),
  properties: { alias: "p", ...fileFlag("older name of --catalog") },
  state: { alias: "s", ...STATES.state },
  "state-file": STATES["state-file"],
  about: { type: "boolean", describe: "list all settings and streams" },
  format: choiceFlag(
    "--format",
    ["text", "json", "markdown", "meltano", "meltano-hub"],
    "form of --about; default: text",
  ),
  test: { type: "string", describe: "test the settings and the key" },
  "log-level": LOG_LEVEL,
  "log-format": { ...LOG_FORMAT, defaultDescription: "json; at a terminal text" },
} as const;

const EXAMPLES = [
  "Examples:",
  "  # print the streams and their fields",
  "  tap-contact-intelligence --config config.json --discover > catalog.json",
  "  # read what the catalog selects",
  "  tap-contact-intelligence --config config.json --catalog catalog.json \\\n    | target-jsonl",
].join("\n");

/** Parses the Singer flags. A mode ignores flags that it does not use, because orchestrators combine flags. @throws UsageError */
export const parseTapCommand = (words: readonly string[], version: string): Promise<Command> =>
  parseWords("tap-contact-intelligence", version, words, addTap);

const addTap: AddCommand = (parser, choose) =>
  parser
    .usage("$0 --config FILE [--catalog FILE] [--state FILE]")
    .epilogue(EXAMPLES)
    .command("$0", false, TAP_FLAGS, ({ config = [], properties, format = "text", ...flags }) => {
      const { catalog = properties } = flags;
      const options = { ...flags, configs: config, catalog, format };
      choose(async (runtime) => (await commandOf(flags))(options, runtime), true);
    });

/** Finds the mode. `--discover` precedes other modes, because Meltano adds it to them. */
async function commandOf({ discover, about, test }: Readonly<Record<string, unknown>>) {
  if (discover === true) return (await import("./commands/discover.ts")).tapDiscover;
  if (about === true) return (await import("./commands/about.ts")).about;
  if (test !== undefined) return (await import("./commands/check.ts")).tapTest;
  return (await import("./commands/tap-sync.ts")).tapSync;
}
