import type { ArgumentsCamelCase, Argv } from "yargs";
import { UsageError } from "./base/errors.ts";
import { nearestName, oneOf } from "./base/text.ts";
import type { Runtime } from "./run/runtime.ts";

/** The command of a command line. */
export type Command = {
  /** Returns the exit code. */
  readonly run: (runtime: Runtime) => Promise<number>;
  /** Whether a platform reads the output. Then a reader that stops early is an error. */
  readonly isForPlatform?: boolean;
};

type Choose = (run: Command["run"], isForPlatform?: boolean) => void;

/** Adds commands to the parser. The parser calls `choose` for the command of the words. */
export type AddCommand = (parser: Argv, choose: Choose) => Argv;

/** The flags that a command has. */
type FlagsOf<Words> = Words extends (words: Argv) => Argv<infer Flags> ? ArgumentsCamelCase<Flags> : never;

const NAME = "source-contact-intelligence";

/** The last value of a flag. */
const last = <Value>(value: Value | readonly Value[]): Value => [value].flat().at(-1) as Value;

/** A flag with one text. The last text counts. */
export const textFlag = (describe: string) =>
  ({ type: "string", nargs: 1, coerce: (value: string) => last(value), describe }) as const;

/** A flag that names a file. Platforms give an empty text for a missing file. */
export const fileFlag = (describe: string) =>
  ({ ...textFlag(describe), coerce: (value: string) => last(value) || undefined }) as const;

/** A flag with one of several words. */
export const choiceFlag = <Choice extends string>(
  name: string,
  choices: readonly Choice[],
  describe: string,
) =>
  ({
    ...parsedFlag(name, oneOf(choices), describe, (text) => choices.find((one) => one === text)),
    type: undefined,
    choices,
  }) as const;

/** A flag whose text is parsed. @param rule for the text, in words @param parse returns undefined for a wrong text */
const parsedFlag = <Value>(
  name: string,
  rule: string,
  describe: string,
  parse: (text: string) => Value | undefined,
) => {
  const coerce = (given: string): Value => {
    const value = parse(last(given));
    if (value === undefined) throw new UsageError(`${name} must be ${rule}, not "${last(given)}"`);
    return value;
  };
  return { ...textFlag(describe), coerce } as const;
};

const countFlag = (name: string, describe: string) =>
  parsedFlag(name, "a whole number of at least 1", describe, (text) =>
    /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined,
  );

/** A flag without a value. */
const switchFlag = (describe: string) => ({ type: "boolean", default: false, describe }) as const;

/** A required word after a command. */
const argument = (describe: string) => ({ type: "string", demandOption: true, describe }) as const;

const CONFIG = { alias: "c", ...textFlag("settings; default: config.json in this folder") } as const;

export const STATES = {
  state: { ...fileFlag("state to continue from (-: stdin)"), conflicts: "state-file" },
  "state-file": fileFlag("continue from this state, and update it"),
} as const;

export const LOG_LEVEL = choiceFlag(
  "--log-level",
  ["debug", "info", "warning", "error", "critical"],
  "least severe messages on stderr",
);

export const LOG_FORMAT = choiceFlag("--log-format", ["text", "json"], "form of messages on stderr");

const JSON_TOO = switchFlag("print JSON at a terminal too");

const CHECK_FLAGS = { config: CONFIG, "exit-code": switchFlag("exit with 1 if the check fails") } as const;
const INIT_FILE = { ...CONFIG, default: "config.json", describe: "config file to write" } as const;

const shardIn = (text: string) =>
  text === "open" ? ("open" as const) : /^\d{1,9}$/.test(text) ? Number(text) : undefined;

const readWords = (words: Argv) =>
  withExamples(
    words
      .options({
        config: CONFIG,
        catalog: fileFlag("configured catalog (JSON); default: all streams"),
        state: STATES.state,
        stream: { array: true, type: "string", nargs: 1, describe: "read only this stream; repeatable" },
        format: {
          ...choiceFlag("--format", ["airbyte", "jsonl"], "Airbyte messages, or the rows of one stream"),
          defaultDescription: "airbyte",
        },
        json: JSON_TOO,
        "state-file": STATES["state-file"],
        "dry-run": { type: "boolean", describe: "show what the next run reads", conflicts: "summary" },
        limit: countFlag("--limit", "stop after N rows per stream; saves no state"),
        "full-refresh": { type: "boolean", describe: "read everything again; buy nothing again" },
        output: { ...fileFlag("folder for rows and state"), alias: "o", conflicts: "state-file" },
        compress: {
          ...choiceFlag("--compress", ["gzip"], "compress the files of --output"),
          implies: "output",
        },
        "file-bytes": { type: "number", hidden: true },
        summary: fileFlag("file for the results of the run (JSON)"),
        plan: { ...fileFlag("plan to read a part of (see plan --help)"), implies: "shard" },
        shard: {
          ...parsedFlag(
            "--shard",
            'the number of a shard, or "open"',
            "part of the plan: its number, or open",
            shardIn,
          ),
          implies: "plan",
        },
        "log-level": LOG_LEVEL,
        "log-format": { ...LOG_FORMAT, defaultDescription: "text" },
      })
      // The first named group is the first group in the help.
      .group("config", "Options:")
      .group(["plan", "shard"], "To read with several machines:"),
    FILES,
    ["print 10 people", "read --stream people --format jsonl --limit 10"],
    [
      "print the people who are new since the last run",
      "read --stream people --format jsonl \\\n    --state-file state.json",
    ],
    ["write Airbyte messages", "read --config config.json > messages.jsonl"],
  );

/** @throws UsageError for flags that exclude each other */
function toReadOptions(given: FlagsOf<typeof readWords>) {
  const { stream: streams = [], format, ...flags } = given;
  if (format === "jsonl" && flags.output === undefined && streams.length !== 1) {
    throw new UsageError(
      "--format jsonl prints the rows of one stream. Name one stream with --stream, or add --output contacts",
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

const planWords = (words: Argv) =>
  withExamples(
    words.options({
      config: CONFIG,
      stream: { ...textFlag("stream to split"), default: "people" },
      shards: countFlag("--shards", "number of shards; default: 1 per million rows"),
      "shards-at-once": countFlag("--shards-at-once", "shards that run at one time; default: all"),
      json: JSON_TOO,
    }),
    ["plan two shards", "plan --shards 2 > plan.jsonl"],
    ["read each shard", "read --plan plan.jsonl --shard 0 -o contacts"],
    ["the last shard is open: it ends now", "read --plan plan.jsonl --shard open -o contacts"],
    ["merge the states", "state merge contacts/shard-* > state.json"],
  );

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The parsed value is in ms. */
const MAX_AGE = parsedFlag(
  "--max-age",
  "a number of minutes, hours or days, such as 26h",
  "exit with 1 if a stream is older: 26h, 90m, 2d",
  (text) =>
    /^\d{1,6}[mhd]$/.test(text) ? Number.parseInt(text, 10) * (UNIT_MS[text.slice(-1)] ?? 0) : undefined,
);

const reconcileWords = (words: Argv) =>
  withExamples(
    words.options({
      config: CONFIG,
      table: { ...textFlag("your table: CSV or JSON lines (-: stdin)"), demandOption: true },
      stream: { ...textFlag("stream in the table"), default: "people" },
      state: fileFlag("state of the runs that filled the table"),
      output: { alias: "o", ...fileFlag("folder for the differences") },
      timezone: textFlag("time zone of dates without an offset"),
      "yes-gone": countFlag("--yes-gone", "accept that N rows are gone"),
      recheck: textFlag("state file; the next run reads lost rows again"),
      json: JSON_TOO,
      "log-format": { ...LOG_FORMAT, defaultDescription: "text" },
    }),
    ["compare a table of people with the service", "reconcile --table keys.csv --state contacts"],
    ["read lost rows again with the next run", "reconcile --table keys.csv --recheck state.json"],
  );

const STATE_USAGE = `Usage: ${NAME} state show FILE, or state merge FILES... Example: ${NAME} state show contacts`;

const addStateCommands: AddCommand = (words, choose) =>
  withExamples(
    words
      .command(
        "merge <states..>",
        false,
        (merge) =>
          merge
            .usage(`${NAME} state merge FILES...`)
            .epilogue("Merges the states of all shards into one state.")
            .positional("states", { array: true, ...argument("state files, or folders of read --output") })
            .option("partial", switchFlag("allow days that are in no state; the next run reads them"))
            .option("json", JSON_TOO),
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
            .positional("file", argument("state file or folder (-: stdin)"))
            .option("config", CONFIG)
            .option("max-age", MAX_AGE)
            .option("sql", {
              ...choiceFlag("--sql", ["duckdb", "postgres"], "print SQL that makes tables of the folder"),
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
      .demandCommand(1, 1, STATE_USAGE, STATE_USAGE),
    // The examples show both commands. The parser's list is too narrow for them.
    ["show how far each stream is", "state show contacts"],
    ["exit with 1 if a stream is older than 26 hours", "state show contacts --max-age 26h"],
    ["make tables of the rows in a folder", "state show contacts --sql postgres | psql"],
    ["merge the states of shards", "state merge contacts/shard-* > state.json"],
  );

/** Adds the commands in the order of the help text. */
const addCommands: AddCommand = (parser, choose) =>
  withExamples(
    parser
      .command("init", "ask two questions, write config.json", { config: INIT_FILE }, (flags) =>
        choose(async (runtime) => (await import("./commands/init.ts")).init(flags, runtime)),
      )
      .command("spec", "print the settings for Airbyte (JSON)", {}, () => choose(runSpec))
      .command("check", "test the settings and the key", CHECK_FLAGS, (flags) =>
        choose(async (runtime) => (await import("./commands/check.ts")).check(flags, runtime)),
      )
      .command("discover", "show the streams and their fields", { config: CONFIG, json: JSON_TOO }, (flags) =>
        choose(async (runtime) => (await import("./commands/discover.ts")).discover(flags, runtime)),
      )
      .command("read", "read rows into files or to stdout", readWords, (flags) => {
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
      .command("state", "show a state, or merge states", (words) => addStateCommands(words, choose))
      .command("reconcile", "compare your table with the service", reconcileWords, (flags) =>
        choose(async (runtime) => (await import("./commands/reconcile.ts")).reconcile(flags, runtime)),
      )
      .demandCommand(
        1,
        1,
        `Usage: ${NAME} COMMAND. Example: ${NAME} read --output contacts. See: ${NAME} --help`,
      )
      .recommendCommands(),
    ["write config.json", "init"],
    FILES,
    ["show the options of a command", "read --help"],
  ).epilogue(
    "\nExit codes: 0 all done, 1 a retry may help, 2 a person must act.\nAirbyte and Singer get only 0 and 1." +
      "\n\nTo try it without an account: contact-intelligence-sandbox demo",
  );

const runSpec: Command["run"] = async (runtime) => (await import("./commands/spec.ts")).spec(runtime);

type Example = readonly [what: string, line: string];

const FILES: Example = ["read everything into files; later runs read what is new", "read --output contacts"];

/** Adds examples to a help text, each on two lines, because the columns of yargs are too narrow. */
function withExamples<Flags>(words: Argv<Flags>, ...all: readonly Example[]): Argv<Flags> {
  const lines = ["Examples:", ...all.flatMap(([what, line]) => [`  # ${what}`, `  ${NAME} ${line}`])];
  return words.epilogue(lines.join("\n"));
}

/** Parses the words of the connector. Without words it prints the help. @throws UsageError */
export async function parseCommand(words: readonly string[], version: string): Promise<Command> {
  // Answers platforms without the parser, because loading it would take most of the time.
  if (words.length === 1 && words[0] === "spec") return { run: runSpec };
  return await parseWords(NAME, version, words.length === 0 ? ["--help"] : words, addCommands);
}

/** The sentences of yargs, and plainer sentences. */
const PLAINER: readonly (readonly [RegExp, string])[] = [
  [/^Not enough arguments following: (\S+)$/, "--$1 needs a value"],
  [/^Arguments (\S+) and (\S+) are mutually exclusive$/, "Use --$1 or --$2, not both"],
  [/^[\w ]+:\s+(\S+) -> (\S+)$/, "--$1 needs --$2"],
  [/^Missing required argument: (\S+)$/, "--$1 is missing"],
  [/^Not enough non-option .*$/, STATE_USAGE],
  [/^Did you mean (\S+)\?$/, 'There is no such command. Did you mean "$1"?'],
];

function plainer(message: string, parser: Argv, name: string, words: readonly string[]): string {
  const [, unknown] = /^Unknown arguments?: ([^,]+)/.exec(message) ?? [];
  if (unknown !== undefined) {
    const flag = words.find((word) => word.replace(/^--?|=.*$/g, "") === unknown) ?? unknown;
    const end = words.findIndex((word) => word.startsWith("-") || word === unknown);
    const { key } = (parser as Argv & { getOptions(): { key: object } }).getOptions();
    const isFlag = flag.startsWith("-");
    const meant = flag.startsWith("--") ? nearestName(unknown, Object.keys(key)) : undefined;
    const advice =
      meant === undefined
        ? `See: ${[name, ...words.slice(0, end), "--help"].join(" ")}`
        : `Did you mean "--${meant}"?`;
    return `Unknown ${isFlag ? "flag" : "word"} "${flag.replace(/=.*/, "")}". ${advice}`;
  }
  return PLAINER.reduce((text, [sentence, plain]) => text.replace(sentence, plain), message);
}

/** Parses words without output and exit. Help texts have 80 columns. @throws UsageError */
export async function parseWords(
  name: string,
  version: string,
  words: readonly string[],
  add: AddCommand,
): Promise<Command> {
  // Refuses two files from stdin: the second file would be empty, and with an empty state a run reads everything again.
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
    const refuse = (message: string): void => reject(new UsageError(plainer(message, parser, name, words)));
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
