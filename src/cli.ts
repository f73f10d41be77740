import type { ArgumentsCamelCase, Argv } from "yargs";
import { UsageError } from "./base/errors.ts";
import type { Runtime } from "./run/runtime.ts";

/** The command that a command line names. */
export type Command = {
  /** Returns the exit code. */
  readonly run: (runtime: Runtime) => Promise<number>;
  /** Whether a platform reads the output, so that an output without a reader is a failure. */
  readonly isForPlatform?: boolean;
};

type Choose = (run: Command["run"], isForPlatform?: boolean) => void;

/** Adds commands to the parser, which calls `choose` when the words name one. */
export type AddCommand = (parser: Argv, choose: Choose) => Argv;

/** The flags that a command has. */
type FlagsOf<Words> = Words extends (words: Argv) => Argv<infer Flags> ? ArgumentsCamelCase<Flags> : never;

const NAME = "source-contact-intelligence";

/** The value of a flag that was given once, or the last one. */
const last = <Value>(value: Value | readonly Value[]): Value => [value].flat().at(-1) as Value;

const lastText: (value: string) => string = last;

/** A flag that takes one text; the last one counts. */
export const textFlag = (describe: string) =>
  ({ type: "string", nargs: 1, coerce: lastText, describe }) as const;

/** A flag that names a file. Platforms give an empty text for a file that they do not have. */
export const fileFlag = (describe: string) =>
  ({ ...textFlag(describe), coerce: (value: string) => last(value) || undefined }) as const;

/** A flag that takes one of several words. */
const choiceFlag = <Choice extends string>(choices: readonly Choice[], describe: string) =>
  ({ choices, nargs: 1, coerce: (value: Choice) => last(value), describe }) as const;

/** A flag whose text is parsed. @param parse returns undefined for what is not of the rule */
const parsedFlag = <Value>(
  [name, rule]: readonly [name: string, rule: string],
  parse: (text: string) => Value | undefined,
  describe: string,
) => {
  const coerce = (given: string): Value => {
    const value = parse(last(given));
    if (value === undefined) throw new UsageError(`${name} must be ${rule}, not "${last(given)}"`);
    return value;
  };
  return { ...textFlag(describe), coerce } as const;
};

const countFlag = (name: string, describe: string) =>
  parsedFlag(
    [name, "a whole number from 1 on"],
    (text) => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined),
    describe,
  );

/** A flag that is on or off. */
const switchFlag = (describe: string) => ({ type: "boolean", default: false, describe }) as const;

/** A word behind a command, which cannot be left out. */
const argument = (describe: string) => ({ type: "string", demandOption: true, describe }) as const;

const CONFIG = { alias: "c", ...textFlag("file (-: stdin); else variables, config.json") } as const;

export const STATES = {
  state: { ...fileFlag("state to continue from (- is stdin)"), conflicts: "state-file" },
  "state-file": fileFlag("continue from this state, and update it"),
} as const;

export const LOG_LEVEL = choiceFlag(
  ["debug", "info", "warning", "error", "critical"],
  "minimum level of messages on stderr",
);

export const LOG_FORMAT = choiceFlag(["text", "json"], "form of messages on stderr");

const JSON_TOO = switchFlag("print JSON at a terminal too");

const CHECK_FLAGS = { config: CONFIG, "exit-code": switchFlag("exit with 1 if the check fails") } as const;

const INIT_FLAGS = {
  config: { ...CONFIG, default: "config.json", describe: "config file to write" },
} as const;

const READ_FLAGS = {
  config: CONFIG,
  catalog: fileFlag("configured catalog (JSON); default: all streams"),
  state: STATES.state,
  stream: { array: true, type: "string", nargs: 1, describe: "read only this stream; repeatable" },
  format: {
    ...choiceFlag(["airbyte", "jsonl"], "Airbyte messages, or the bare records of one stream"),
    defaultDescription: "airbyte",
  },
  json: JSON_TOO,
  "state-file": STATES["state-file"],
  "dry-run": { type: "boolean", describe: "show what would be read, and do nothing", conflicts: "summary" },
  limit: countFlag("--limit", "stop after N rows per stream; saves no state"),
  "full-refresh": { type: "boolean", describe: "ignore the state; repeat no paid job" },
  output: {
    ...fileFlag("write records and state to files in this folder"),
    alias: "o",
    conflicts: "state-file",
  },
  compress: { ...choiceFlag(["gzip"], "compress the files of --output"), implies: "output" },
  "file-bytes": { type: "number", hidden: true },
  summary: fileFlag("write what the run did to this file (JSON)"),
  plan: { ...fileFlag("plan whose shard is read (see the command plan)"), implies: "shard" },
  shard: {
    ...parsedFlag(
      ["--shard", 'the number of a shard, or "open"'],
      (text) => (text === "open" ? ("open" as const) : /^\d{1,9}$/.test(text) ? Number(text) : undefined),
      "which shard of the plan: its number, or open",
    ),
    implies: "plan",
  },
  "log-level": LOG_LEVEL,
  "log-format": { ...LOG_FORMAT, defaultDescription: "text" },
} as const;

const READ_EXAMPLES = [
  ["all streams, as Airbyte messages", "read --config config.json > messages.jsonl"],
  ["all streams into files, and later what is new", "read --config config.json --output contacts"],
  [
    "the people who are new since the last run, as bare records",
    "read --config config.json --format jsonl \\\n    --stream people --state-file state.json",
  ],
] as const;

const readWords = (words: Argv) =>
  words
    .options(READ_FLAGS)
    // Named first, it precedes the other group.
    .group("config", "Options:")
    .group(["plan", "shard"], "One account on several machines:")
    .epilogue(examples(READ_EXAMPLES));

/** Throws UsageError for flags that exclude each other. */
function toReadOptions(given: FlagsOf<typeof readWords>) {
  const { stream: streams = [], format, ...flags } = given;
  if (format === "jsonl" && flags.output === undefined && streams.length !== 1) {
    throw new UsageError(
      "--format jsonl writes the bare records of one stream: name it with --stream, or use --output DIR for several",
    );
  }
  const json = flags.json || format === "airbyte";
  return { ...flags, json, streams, format: format ?? "airbyte" } as const;
}

const JOBS_FLAGS = {
  config: CONFIG,
  state: STATES.state,
  "state-file": { ...STATES["state-file"], describe: "state file of the runs; only read" },
  json: switchFlag("print JSON"),
} as const;

const PLAN_EXAMPLES = [
  ["a plan of ten shards", "plan --config config.json \\\n    --shards 10 > plan.jsonl"],
  ["one of them", "read --config config.json \\\n    --plan plan.jsonl --shard 0 --output contacts"],
  ["the last one", "read --config config.json \\\n    --plan plan.jsonl --shard open --output contacts"],
  ["one state of all", "state merge contacts/shard-* > state.json"],
] as const;

const planWords = (words: Argv) =>
  words
    .options({
      config: CONFIG,
      stream: { ...textFlag("stream to split"), default: "people" },
      shards: countFlag("--shards", "number of shards; default: 1 a million rows"),
      "shards-at-once": countFlag("--shards-at-once", "shards that run in parallel; default: all"),
      json: JSON_TOO,
    })
    .epilogue(examples(PLAN_EXAMPLES));

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** In ms. */
const MAX_AGE = parsedFlag(
  ["--max-age", "a number of minutes, hours or days, such as 26h"],
  (text) =>
    /^\d{1,6}[mhd]$/.test(text) ? Number.parseInt(text, 10) * (UNIT_MS[text.slice(-1)] ?? 0) : undefined,
  "exit with 1 if a stream is older, such as 26h",
);

const RECONCILE_FLAGS = {
  config: CONFIG,
  table: { ...textFlag("CSV or JSON lines with key and cursor"), demandOption: true },
  stream: { ...textFlag("stream of the table"), default: "people" },
  state: fileFlag("state of the syncs that filled it"),
  output: { alias: "o", ...fileFlag("folder that takes what differs") },
  // It changes nothing.
  full: { ...switchFlag(""), hidden: true },
  timezone: textFlag("zone of dates without an offset"),
  "yes-gone": countFlag("--yes-gone", "accept that this many are gone"),
  recheck: textFlag("state file: read lost days again"),
  "log-format": { ...LOG_FORMAT, defaultDescription: "text" },
} as const;

const addStateCommands: AddCommand = (words, choose) =>
  words
    .command(
      "merge <states..>",
      false,
      (merge) =>
        merge
          .usage(`${NAME} state merge STATES..`)
          .epilogue("Prints one state that says what the states of all shards say.")
          .positional("states", { array: true, ...argument("state files, or folders of read --output") })
          .option("partial", switchFlag("leave days of no state to the next run")),
      (flags) =>
        choose(async (runtime) => (await import("./commands/state-merge.ts")).stateMerge(flags, runtime)),
    )
    .command(
      "show <file>",
      false,
      (show) =>
        show
          .usage(`${NAME} state show FILE`)
          .epilogue("Shows how far each stream has come, and what the next run reads.")
          .positional("file", argument("state file or folder (- is stdin)"))
          .option("config", fileFlag("settings of the next run; default: the defaults"))
          .option("max-age", MAX_AGE)
          .option("sql", {
            ...choiceFlag(["duckdb", "postgres"], "print SQL that makes tables of the folder"),
            conflicts: ["config", "max-age"],
          }),
      ({ file, maxAge, config, sql }) => {
        // The parser makes an empty text of a dash.
        const options = { file: file || "-", config, maxAgeMs: maxAge };
        choose(async (runtime) =>
          sql === undefined
            ? (await import("./commands/state.ts")).showState(options, runtime)
            : (await import("./commands/state-sql.ts")).showSql(options.file, sql, runtime),
        );
      },
    )
    .demandCommand(1, 1, "Say what to do with the state: show or merge", "Name only one command")
    // The parser's own list has too little room for the names of these two.
    .epilogue(
      examples([
        ["how far each stream has come", "state show state.json"],
        ["whether a stream has not been complete for too long", "state show --max-age 26h state.json"],
        ["tables of the rows in a folder", "state show contacts --sql postgres | psql"],
        ["one state of the shards of a plan", "state merge contacts/shard-*"],
      ]),
    );

/** In the order of the help text. */
const addCommands: AddCommand = (parser, choose) =>
  parser
    .command("init", "ask for address and key, and save them", INIT_FLAGS, (flags) =>
      choose(async (runtime) => (await import("./commands/init.ts")).init(flags, runtime)),
    )
    .command("spec", "print the settings as a SPEC message", {}, () => choose(runSpec))
    .command("check", "test the config and its key", CHECK_FLAGS, (flags) =>
      choose(async (runtime) => (await import("./commands/check.ts")).check(flags, runtime)),
    )
    .command("discover", "show or print the streams", { config: CONFIG, json: JSON_TOO }, (flags) =>
      choose(async (runtime) => (await import("./commands/discover.ts")).discover(flags, runtime)),
    )
    .command("read", "read streams to stdout or into files", readWords, (flags) => {
      const options = toReadOptions(flags);
      const run: Command["run"] = async (runtime) =>
        (await import("./commands/read.ts")).read(options, runtime);
      choose(run, options.format === "airbyte");
    })
    .command("jobs", "show what the next run would buy", JOBS_FLAGS, (flags) =>
      choose(async (runtime) => (await import("./commands/jobs.ts")).jobs(flags, runtime)),
    )
    .command("plan", "split a stream for several machines", planWords, (flags) =>
      choose(async (runtime) => (await import("./commands/plan.ts")).plan(flags, runtime)),
    )
    .command("state", "show a state, or merge those of shards", (words) => addStateCommands(words, choose))
    .command("reconcile", "compare a table with the service", RECONCILE_FLAGS, (flags) =>
      choose(async (runtime) => (await import("./commands/reconcile.ts")).reconcile(flags, runtime)),
    )
    .demandCommand(1, 1, "Name a command", "Name only one command")
    .recommendCommands()
    .epilogue(
      examples([
        ["does the key work?", "check --config config.json"],
        ["the options of a command", "read --help"],
      ]).concat(
        "\n\nExit codes: 0 all done, 1 another try may help, 2 a person must act.\n",
        "Calls of Airbyte and Singer only know 0 and 1.",
        "\n\nTo try it without an account: contact-intelligence-sandbox demo",
      ),
    );

const runSpec: Command["run"] = async (runtime) => (await import("./commands/spec.ts")).spec(runtime);

/** The yargs list of examples puts them side by side, which leaves too little room. */
function examples(all: readonly (readonly [what: string, words: string])[]): string {
  return ["Examples:", ...all.flatMap(([what, words]) => [`  # ${what}`, `  ${NAME} ${words}`])].join("\n");
}

/** Parses the words of the connector; no words ask for help. Throws UsageError. */
export async function parseCommand(words: readonly string[], version: string): Promise<Command> {
  // Platforms ask for it alone: loading the parser would take most of the time.
  if (words.length === 1 && words[0] === "spec") return { run: runSpec };
  return await parseWords(NAME, version, words.length === 0 ? ["--help"] : words, addCommands);
}

/**
 * Parses words with a parser that does not print and does not exit. Its help breaks a word where a text does not fit into 80
 * columns. Throws UsageError.
 */
export async function parseWords(
  name: string,
  version: string,
  words: readonly string[],
  add: AddCommand,
): Promise<Command> {
  // The second file would be empty, and an empty state reads everything again.
  if (words.filter((word) => /^(?:-[\w-]+=|-\w)?-$/.test(word)).length > 1)
    throw new UsageError("Only one file can be - (stdin): give the others by their paths");
  const home = words.find((word) => /^(?:-[\w-]+=|-\w)?~(?:\/|$)/.test(word));
  if (home !== undefined)
    throw new UsageError(`The shell did not replace "~" in ${home}. Write the whole path`);
  const { default: yargs } = await import("yargs");
  const base = yargs().scriptName(name).version(version).alias("version", "v").help().alias("help", "h");
  let command: Command | undefined;
  const parser = add(base.strict().exitProcess(false).wrap(80), (run, isForPlatform = false) => {
    command = { run, isForPlatform };
  });
  const text = await new Promise<string>((resolve, reject) => {
    const refuse = (message: string): void => reject(new UsageError(message));
    parser
      .fail((message, error) => refuse(message || error?.message))
      .parseAsync([...words], {}, (error, _flags, output) =>
        error ? refuse(error.message) : resolve(output),
      )
      .catch(reject);
  });
  const print: Command["run"] = async ({ stdout }) => {
    stdout.write(`${text}\n`);
    return 0;
  };
  return command ?? { run: print };
}
