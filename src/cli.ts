import type { Argv } from "yargs";
import { UsageError } from "./base/errors.ts";
import { nearestName } from "./base/text.ts";
import type { CheckOptions } from "./commands/check.ts";
import type { DiscoverOptions } from "./commands/discover.ts";
import type { InitOptions } from "./commands/init.ts";
import type { JobsOptions } from "./commands/jobs.ts";
import type { CompactOptions } from "./commands/output-compact.ts";
import type { PlanOptions } from "./commands/plan.ts";
import type { ReadOptions, ShardOptions } from "./commands/read.ts";
import type { ReconcileOptions } from "./commands/reconcile.ts";
import type { StateOptions } from "./commands/state.ts";
import type { StateMergeOptions } from "./commands/state-merge.ts";
import type { TapOptions } from "./commands/tap-options.ts";

/** What a command line asks for. */
export type Command =
  | { readonly kind: "spec" }
  | ({ readonly kind: "check" } & CheckOptions)
  | ({ readonly kind: "discover" } & DiscoverOptions)
  | ({ readonly kind: "read" } & ReadOptions)
  | ({ readonly kind: "jobs" } & JobsOptions)
  | ({ readonly kind: "state" } & StateOptions)
  | ({ readonly kind: "plan" } & PlanOptions)
  | ({ readonly kind: "reconcile" } & ReconcileOptions)
  | ({ readonly kind: "state-merge" } & StateMergeOptions)
  | ({ readonly kind: "output-compact" } & CompactOptions)
  | ({ readonly kind: "init" } & InitOptions)
  | ({ readonly kind: "tap" } & TapOptions)
  /** Help or the version were asked for, and are all of the answer. */
  | { readonly kind: "text"; readonly text: string };

type Choose = (command: Command) => void;

/** Adds one command to the parser, which calls `choose` when it is asked for. */
type AddCommand = (parser: Argv, choose: Choose) => Argv;

const NAME = "source-contact-intelligence";

/** A flag that takes one text. */
export const textFlag = (describe: string) => ({ type: "string", nargs: 1, describe }) as const;

/** A flag that is on or off. */
const switchFlag = (describe: string) => ({ type: "boolean", default: false, describe }) as const;

/** A word behind a command, which cannot be left out. */
const argument = (describe: string) => ({ type: "string", demandOption: true, describe }) as const;

const CONFIG = { alias: "c", ...textFlag("config file (- is stdin); default: environment") } as const;

export const STATE = textFlag("state to continue from (- is stdin)");

export const STATE_FILE = textFlag("continue from this state, and update it");

export const LOG_LEVEL = {
  choices: ["debug", "info", "warning", "error", "critical"] as const,
  describe: "minimum level of messages on stderr",
} as const;

const JSON_TOO = switchFlag("print JSON at a terminal too");

const addSpec: AddCommand = (parser, choose) =>
  parser.command("spec", "print the settings as a SPEC message", {}, () => choose({ kind: "spec" }));

const addCheck: AddCommand = (parser, choose) =>
  parser.command(
    "check",
    "test the config and its key",
    {
      config: CONFIG,
      "exit-code": switchFlag("exit with 1 if the check fails"),
    },
    ({ config, exitCode }) => choose({ kind: "check", config, exitCode }),
  );

const addInit: AddCommand = (parser, choose) =>
  parser.command(
    "init",
    "ask for address and key, and save them",
    { config: { ...CONFIG, default: "config.json", describe: "config file to write" } },
    ({ config }) => choose({ kind: "init", config }),
  );

const addDiscover: AddCommand = (parser, choose) =>
  parser.command(
    "discover",
    "show or print the streams",
    { config: CONFIG, json: JSON_TOO },
    ({ config, json }) => choose({ kind: "discover", config, json }),
  );

const READ_FLAGS = {
  config: CONFIG,
  catalog: textFlag("what to read, as a catalog; default: all"),
  state: STATE,
  stream: { array: true, ...textFlag("read only this stream; repeatable") },
  format: {
    choices: ["airbyte", "jsonl"] as const,
    defaultDescription: "airbyte",
    describe: "Airbyte messages, or the bare records of one stream",
  },
  json: JSON_TOO,
  "state-file": STATE_FILE,
  "dry-run": { type: "boolean", describe: "show what would be read, and do nothing", conflicts: "summary" },
  limit: textFlag("a sample: so many rows a stream, no state"),
  "full-refresh": { type: "boolean", describe: "read everything again; jobs go on" },
  output: { alias: "o", ...textFlag("write records and state to files in this folder") },
  compress: { choices: ["gzip"] as const, describe: "compress the files of --output" },
  "file-bytes": { type: "number", hidden: true },
  summary: textFlag("write what the run did to this file (JSON)"),
  plan: textFlag("plan whose shard is read (see the command plan)"),
  shard: textFlag("which shard of the plan: its number, or open"),
  "log-level": LOG_LEVEL,
} as const;

const READ_EXAMPLES = [
  ["all streams, as Airbyte messages", "read --config config.json > messages.jsonl"],
  ["all streams into files, and later what is new", "read --config config.json --output contacts"],
  [
    "the people who are new since the last run, as bare records",
    "read --config config.json --format jsonl \\\n    --stream people --state-file state.json",
  ],
] as const;

const addRead: AddCommand = (parser, choose) =>
  parser.command(
    "read",
    "read streams to stdout or into files",
    (words) =>
      words
        .options(READ_FLAGS)
        // Named first, it stands before the other group.
        .group("config", "Options:")
        .group(["plan", "shard"], "One account on several machines:")
        .epilogue(examples(READ_EXAMPLES)),
    ({ stream, plan: file, shard, format, ...flags }) => {
      const limit = wholeNumber("--limit", flags.limit);
      const part = partOf(file, shard);
      const json = flags.json || format === "airbyte";
      const options = { ...flags, json, limit, format: format ?? "airbyte", streams: stream ?? [], part };
      refuseTwoOutputs(options);
      refuseTwoStates(options);
      refuseTwoReaders(flags.config, flags.catalog, flags.state);
      choose({ kind: "read", ...options });
    },
  );

const PLAN_EXAMPLES = [
  ["a plan of ten shards", "plan --config config.json \\\n    --shards 10 > plan.jsonl"],
  ["one of them", "read --config config.json \\\n    --plan plan.jsonl --shard 0 --output rows"],
  ["the last one", "read --config config.json \\\n    --plan plan.jsonl --shard open --output rows"],
  ["one state of all", "state merge rows/shard-* > state.json"],
] as const;

const addPlan: AddCommand = (parser, choose) =>
  parser.command(
    "plan",
    "split a stream for several machines",
    (words) =>
      words
        .options({
          config: CONFIG,
          stream: { default: "people", ...textFlag("stream to split") },
          shards: textFlag("number of shards; default: 1 a million rows"),
          "shards-at-once": textFlag("number of shards that run in parallel; default: all"),
          json: JSON_TOO,
        })
        .epilogue(examples(PLAN_EXAMPLES)),
    ({ shards, shardsAtOnce, ...words }) =>
      choose({
        kind: "plan",
        ...words,
        shards: wholeNumber("--shards", shards),
        shardsAtOnce: wholeNumber("--shards-at-once", shardsAtOnce),
      }),
  );

const addState: AddCommand = (parser, choose) =>
  parser.command("state", "show a state, or merge those of shards", (words) =>
    words
      .command(
        "merge <states..>",
        false,
        (merge) =>
          merge
            .usage(`${NAME} state merge STATES..`)
            .epilogue("Prints one state that says what the states of all shards say.")
            .positional("states", { array: true, ...argument("state files, or folders of read --output") })
            .option("partial", switchFlag("leave days that no state holds to the next run")),
        ({ partial, states }) => choose({ kind: "state-merge", partial, states }),
      )
      .command(
        "show <file>",
        false,
        (show) =>
          show
            .usage(`${NAME} state show FILE`)
            .epilogue("Shows how far each stream has come, and what the next run reads.")
            .positional("file", argument("state file (- is stdin)"))
            .option("config", textFlag("settings of the next run; default: the defaults"))
            .option("max-age", textFlag("exit with 1 if a stream is older, such as 26h")),
        // The parser makes an empty text of a dash.
        ({ file, maxAge, config }) =>
          choose({
            kind: "state",
            config,
            file: file === "" ? "-" : file,
            maxAgeMs: durationOf("--max-age", maxAge),
          }),
      )
      .demandCommand(1, 1, "Say what to do with the state: show or merge", "Name only one command")
      // The parser's own list has too little room for the names of these two.
      .epilogue(
        examples([
          ["how far each stream has come", "state show state.json"],
          ["whether a stream has not been complete for too long", "state show --max-age 26h state.json"],
          ["one state of the shards of a plan", "state merge rows/shard-*"],
        ]),
      ),
  );

/** Not the parser's own examples, which stand side by side. */
function examples(all: readonly (readonly [what: string, words: string])[]): string {
  return ["Examples:", ...all.flatMap(([what, words]) => [`  # ${what}`, `  ${NAME} ${words}`])].join("\n");
}

const addJobs: AddCommand = (parser, choose) =>
  parser.command(
    "jobs",
    "show what the next run would buy",
    {
      config: CONFIG,
      state: STATE,
      "state-file": { ...STATE_FILE, describe: "state file of the runs; only read" },
      json: switchFlag("print JSON"),
    },
    ({ config, state, stateFile, json }) => {
      refuseTwoStates({ state, stateFile });
      refuseTwoReaders(config, state);
      choose({ kind: "jobs", config, state, stateFile, json });
    },
  );

const RECONCILE_EXAMPLES = [
  [
    "which rows the table lacks, and who is gone",
    "reconcile --config config.json \\\n    --table keys.csv --output found",
  ],
] as const;

const addReconcile: AddCommand = (parser, choose) =>
  parser.command(
    "reconcile",
    "compare a table with the service",
    (words) =>
      words
        .options({
          config: CONFIG,
          table: textFlag("CSV or JSON lines with key and cursor"),
          stream: { default: "people", ...textFlag("stream of the table") },
          state: textFlag("state of the syncs that filled it"),
          output: { alias: "o", ...textFlag("folder that takes what differs") },
          // An earlier version compared less without it.
          full: { ...switchFlag(""), hidden: true },
          timezone: textFlag("zone of dates without an offset"),
          "yes-gone": textFlag("accept that this many are gone"),
          recheck: textFlag("state file: read lost days again"),
        })
        .epilogue(examples(RECONCILE_EXAMPLES)),
    ({ yesGone, full: _, ...flags }) => {
      refuseTwoReaders(flags.config, flags.table, flags.state);
      choose({ kind: "reconcile", ...flags, yesGone: wholeNumber("--yes-gone", yesGone) });
    },
  );

const addOutput: AddCommand = (parser, choose) =>
  parser.command("output", "merge the files of a folder", (words) =>
    words
      .command(
        "compact <folder>",
        false,
        (compact) =>
          compact
            .usage(`${NAME} output compact FOLDER`)
            .epilogue("Makes one file of all files of a stream that read --output has written.")
            .positional("folder", argument("folder of read --output"))
            .option("newest", switchFlag("keep only the newest row of each key")),
        ({ folder, newest }) => choose({ kind: "output-compact", folder, newest }),
      )
      .demandCommand(1, 1, "Say what to do with the folder: compact", "Name only one command")
      .epilogue(examples([["one file a stream, with the newest rows", "output compact --newest rows"]])),
  );

/** In the order of the help text. */
const COMMANDS: readonly AddCommand[] = [
  addInit,
  addSpec,
  addCheck,
  addDiscover,
  addRead,
  addJobs,
  addPlan,
  addState,
  addOutput,
  addReconcile,
];

/** Parses the Airbyte words; no words ask for help. Throws UsageError. */
export async function parseCommand(words: readonly string[], version: string): Promise<Command> {
  const args = words.length === 0 ? ["--help"] : words;
  if (args.length === 1 && args[0] === "spec") return { kind: "spec" };
  refuseMoved(args[0]);
  let command: Command | undefined;
  const base = await openParser(NAME, version, ["states", ...(args.includes("read") ? ["stream"] : [])]);
  const choose: Choose = (chosen) => {
    command = chosen;
  };
  const parser = COMMANDS.reduce((added, add) => add(added, choose), base)
    .demandCommand(1, 1, "Name a command", "Name only one command")
    .recommendCommands()
    .epilogue(
      examples([
        ["does the key work?", "check --config config.json"],
        ["the options of a command", "read --help"],
      ]).concat(
        "\n\nExit codes: 0 all done, 1 another try may mend it, 2 a person must act.\n",
        "Calls of Airbyte and Singer only know 0 and 1.",
        "\n\nTo try it without an account: contact-intelligence-sandbox demo",
      ),
    );
  const text = await answerOf(parser, args);
  return command ?? { kind: "text", text };
}

/** Names the command that took the place of a word of earlier versions. Throws UsageError. */
function refuseMoved(word: string | undefined): void {
  if (word !== "demo" && word !== "sandbox") return;
  const now = word === "demo" ? "contact-intelligence-sandbox demo" : "contact-intelligence-sandbox";
  throw new UsageError(`"${NAME} ${word}" is a command of its own now: ${now}`);
}

/**
 * A parser that neither prints nor exits: `answerOf` runs it. Of a flag that is given twice the last one counts. Its help
 * breaks a text in the middle of a word where the text does not fit into 80 columns.
 */
export async function openParser(
  name: string,
  version: string,
  repeatable: readonly string[],
): Promise<Argv> {
  const { default: yargs } = await import("yargs");
  return yargs()
    .scriptName(name)
    .version(version)
    .alias("version", "v")
    .help()
    .alias("help", "h")
    .strict()
    .middleware((flags) => keepLast(flags, ["_", ...repeatable]))
    .exitProcess(false)
    .wrap(80);
}

function keepLast(flags: Record<string, unknown>, lists: readonly string[]): void {
  for (const [name, value] of Object.entries(flags)) {
    if (Array.isArray(value) && !lists.includes(name)) flags[name] = value.at(-1);
    if (flags[name] === "" && OPTIONAL_FILES.has(name)) delete flags[name];
  }
}

/** Platforms give an empty text for a file that they do not have. */
const OPTIONAL_FILES: ReadonlySet<string> = new Set([
  ...["catalog", "output", "plan", "properties", "state", "state-file", "stateFile", "summary", "p", "s"],
]);

/** A whole number from 1 on; undefined if there is none. Throws UsageError. */
function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`${name} must be a whole number from 1 on, not "${text}"`);
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** "26h" in ms; undefined if there is none. Throws UsageError. */
function durationOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, number, unit = ""] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (number === undefined)
    throw new UsageError(`${name} must be a number of minutes, hours or days, such as 26h, not "${text}"`);
  return Number(number) * (UNIT_MS[unit] ?? 0);
}

/** The part of a plan that is to be read; undefined without a plan. Throws UsageError. */
function partOf(plan: string | undefined, shard: string | undefined): ShardOptions | undefined {
  if (plan === undefined && shard === undefined) return undefined;
  if (plan === undefined || shard === undefined) {
    throw new UsageError("--plan and --shard belong together: name the plan and the shard to read");
  }
  if (shard !== "open" && !/^\d{1,9}$/.test(shard)) {
    throw new UsageError(`--shard must be the number of a shard, or "open", not "${shard}"`);
  }
  return { plan, shard: shard === "open" ? "open" : Number(shard) };
}

function refuseTwoOutputs({ format, streams, stateFile, output, compress }: ReadOptions): void {
  if (output !== undefined && stateFile !== undefined) {
    throw new UsageError("--output keeps the state in its folder: leave out --state-file");
  }
  if (output === undefined && compress !== undefined) {
    throw new UsageError("--compress is for files: add --output DIR");
  }
  if (output === undefined && format === "jsonl" && streams.length !== 1) {
    throw new UsageError(
      "--format jsonl writes the bare records of one stream: name it with --stream, or use --output DIR for several",
    );
  }
}

export function refuseTwoStates(options: Pick<ReadOptions, "state" | "stateFile">): void {
  if (options.state === undefined || options.stateFile === undefined) return;
  throw new UsageError("--state and --state-file both say where to continue: give one of them");
}

/** The second file would be empty, and an empty state reads everything again. Throws UsageError. */
export function refuseTwoReaders(...files: readonly (string | undefined)[]): void {
  if (files.filter((file) => file === "-").length < 2) return;
  throw new UsageError("Only one file can be - (stdin): give the others by their paths");
}

/** Runs the parser; what it has to say itself (help, version) is returned, what it complains of is thrown. */
export async function answerOf(parser: Argv, args: readonly string[]): Promise<string> {
  const answer = (words: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      parser
        .fail((message, error) => reject(usageError(message, error)))
        .parseAsync([...words], {}, (error, _argv, output) => {
          if (error) reject(usageError(error.message, error));
          else resolve(output);
        })
        .catch(reject);
    });
  try {
    return await answer(args);
  } catch (error) {
    const [first = ""] = args;
    const [, names] = /^Unknown arguments?: (.*)$/s.exec((error as UsageError).message) ?? [];
    const isCommand = first !== "" && !first.startsWith("-");
    if (isCommand && ((error as UsageError).message.startsWith("Did you mean") || names === first))
      throw new UsageError(
        `Unknown command: ${isGroup(first) ? args[1] : first}. ${names === undefined ? (error as UsageError).message : SEE_HELP}`,
      );
    if (names === undefined) throw error;
    throw unknownArguments(names.split(", "), await answer([...(isCommand ? [first] : []), "--help"]));
  }
}

/** Whether a command has commands of its own. Where one is known, only the next can be unknown. */
const isGroup = (command: string): boolean => command === "state" || command === "output";

const SEE_HELP = "See --help";

/** Names what nobody knows, each once, with the flag that may have been meant. @param help of the command */
function unknownArguments(all: readonly string[], help: string): UsageError {
  const spelt = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const names = all.filter((name) => spelt(name) === name || !all.includes(spelt(name)));
  const flags = [...help.matchAll(/--([a-z-]+)/g)].map(([, flag = ""]) => flag);
  const meant = names.flatMap((name) => nearestName(name, flags) ?? []);
  const advice =
    meant.length === 0 ? SEE_HELP : `Did you mean ${meant.map((flag) => `--${flag}`).join(", ")}?`;
  return new UsageError(
    `Unknown ${names.length === 1 ? "argument" : "arguments"}: ${names.join(", ")}. ${advice}`,
  );
}

/** Parsing does nothing but parse, so whatever it throws is about the words. */
function usageError(message: string, error: Error | undefined): UsageError {
  if (error instanceof UsageError) return error;
  // The parser's own words for a file that is not named.
  if (message.startsWith("Not enough non-option arguments")) return new UsageError("Name a state file");
  const [, flag = ""] = /^Not enough arguments following: (.*)$/.exec(message) ?? [];
  if (flag !== "") return new UsageError(`${flag.length === 1 ? "-" : "--"}${flag} needs a value`);
  const [, one = "", other] = /^Arguments (\S+) and (\S+) are mutually exclusive$/.exec(message) ?? [];
  if (one !== "") return new UsageError(`--${one} and --${other} exclude each other: give one of them`);
  return new UsageError(message || error?.message);
}
