import { describe, expect, it } from "vitest";
import { parseCommand } from "../../src/cli.ts";
import { parseTapCommand } from "../../src/tap-cli.ts";

/** Words of a command line, one space apart. */
const LINES = [
  ...[
    "",
    "spec",
    "--version",
    "nonsense",
    "check",
    "check -c c.json",
    "check --config c.json --exit-code",
    "check --confg c",
  ],
  ...["init", "init --config x.json", "discover", "discover --config c.json --json", "read", "read extra"],
  ...[
    "read --config c.json --catalog cat.json --state s.json --summary sum.json --log-level warning",
    "read --log-level warn",
  ],
  ...["read --stream people --stream sources --output rows --compress gzip --full-refresh", "read --stream"],
  ...[
    "read --format airbyte",
    "read --format jsonl",
    "read --format csv",
    "read --format jsonl --stream people",
  ],
  ...["read --format jsonl --stream people --stream sources", "read --format jsonl --stream people --json"],
  ...[
    "read --output a --format jsonl --stream people",
    "read -o a --state-file s.json",
    "read --output a --catalog c",
  ],
  ...["read --state a --state-file b --format jsonl --stream people", "read --state-file s.json"],
  "read --config - --state - --state-file s.json",
  ...[
    "read --state-file s.json --format jsonl --stream people",
    "read --dry-run",
    "read --dry-run --summary s.json",
  ],
  ...[
    "read --limit 10",
    "read --limit 0",
    "read --limit ten",
    "read --limit 1000000000",
    "read --limit 999999999",
  ],
  ...[
    "read --plan p.jsonl",
    "read --shard 0",
    "read --plan p.jsonl --shard 0",
    "read --plan p.jsonl --shard open",
    "read --full-refrehs",
  ],
  ...["read --plan p.jsonl --shard -1", "read --plan p.jsonl --shard x", "read --plan p.jsonl --shard 01"],
  ...[
    "read --plan p --shard 3 --shards-at-once 4 --output rows",
    "read --plan p --shard 3 --shards-at-once 0",
  ],
  ...[
    "read --plan p --shard 3 --catalog c.json",
    "read --shards-at-once 4",
    "read --plan p --shard 3 --stream people",
  ],
  ...[
    "read --file-bytes 5 --output a",
    "jobs",
    "jobs --state s.json",
    "jobs --state s.json --state-file t.json",
  ],
  ...[
    "jobs --state-file t.json --json",
    "plan",
    "plan --shards 3 --stream companies --json",
    "plan --shards none",
  ],
  ...["plan --resume p.jsonl", "state", "state show", "state show s.json", "state show -", "state show a b"],
  ...["state show --max-age 26h s.json", "state show --max-age 90m s.json", "state show --max-age 2d s.json"],
  ...[
    "state show --max-age 26 s.json",
    "state merge",
    "state merge a",
    "state merge a b --partial",
    "state other",
    "state shw s.json",
    "statee show s.json",
  ],
  ...[
    "output",
    "output compact",
    "output compact rows",
    "output compact --newest rows",
    "output other x",
    "output compat x",
  ],
  ...["reconcile", "reconcile --table t.csv --full --timezone Europe/Berlin --yes-gone 3 --output found"],
  ...[
    "reconcile --sql duckdb --table people --stream companies",
    "reconcile --table t --state s --recheck r",
  ],
  ...["reconcile --yes-gone many", "reconcile --config - --table -", "jobs --config - --state -"],
  ...["read --config - --state -", "read --config - --catalog c --state s", "read --catalog - --state -"],
];

const TAP_LINES = [
  ...[
    "",
    "--config c.json",
    "--config a.json --config ENV",
    "--config - --config ENV --catalog c.json",
    "-c - --state -",
    "--config c.json --catalog cat.json --state s.json",
  ],
  ...[
    "--config c.json --properties p.json",
    "--config c --properties p --catalog q",
    "--config c.json --discover",
  ],
  ...[
    "--config c.json --test",
    "--config c.json --test=records",
    "--about",
    "--about --format json",
    "--about --format markdown",
  ],
  ...[
    "--config c.json --log-level debug",
    "--config c.json --log-level loud",
    "--version",
    "extra",
    "--nonsense",
  ],
  ...["--version extra", "extra -v"],
];

/** The flags of each command that take a value. */
const VALUES: Readonly<Record<string, string>> = {
  check: "config",
  discover: "config",
  init: "config",
  jobs: "config state state-file",
  plan: "config stream shards resume",
  read: "config catalog state stream format state-file limit output compress summary plan shard shards-at-once log-level",
  reconcile: "config table stream state output timezone yes-gone recheck sql",
  "state show x": "max-age",
};

const TAP_VALUES = { "": "config catalog properties state state-file format test log-level" };

/** Each of the flags without its value, with an empty one, and twice. */
const flagLines = (flags: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(flags).flatMap(([command, names]) =>
    names.split(" ").flatMap((name) => {
      const words = `${command} --${name}`.trim();
      return [words, `${words}=`, `${words} 1 --${name} 2`];
    }),
  );

/** Values that the flags take, where a text of any kind is none. A flag without a value here is a switch or takes any text. */
const GOOD: Readonly<Record<string, string>> = {
  ...{ format: "jsonl", limit: "5", shard: "1", "shards-at-once": "2", compress: "gzip", sql: "duckdb" },
  ...{ "log-level": "info", shards: "3", timezone: "UTC", "yes-gone": "3", test: "records" },
  "max-age": "26h",
};

const SWITCHES = new Set(["json", "dry-run", "full-refresh", "full", "discover", "about"]);

/** What a command refuses of each flag alone, and of each two that it takes alone. */
async function refusedOf(parse: Parse, flags: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const refused: string[] = [];
  const takes = async (line: string): Promise<boolean> => {
    const text = await told(parse, line);
    if (text.startsWith("Error")) refused.push(`$ ${line}`, text);
    return !text.startsWith("Error");
  };
  for (const [command, names] of Object.entries(flags)) {
    const taken: string[] = [];
    for (const name of names.split(" ")) {
      const words = SWITCHES.has(name) ? `--${name}` : `--${name} ${GOOD[name] ?? "x"}`;
      if (await takes(`${command} ${words}`.trim())) taken.push(words);
    }
    for (const [nth, one] of taken.entries())
      for (const other of taken.slice(nth + 1)) await takes(`${command} ${one} ${other}`.trim());
  }
  return refused;
}

const HELP = [
  "",
  "init",
  "spec",
  "check",
  "discover",
  "read",
  "jobs",
  "plan",
  "state",
  "state show",
  "state merge",
];

type Parse = typeof parseCommand | typeof parseTapCommand;

async function told(parse: Parse, line: string): Promise<string> {
  const words = line === "" ? [] : line.split(" ");
  try {
    const command = await parse(words, "1.2.3");
    return command.kind === "text" ? command.text : JSON.stringify(command);
  } catch (error) {
    return String(error);
  }
}

/** After a change that is meant: `npx vitest run test/e2e/cli.test.ts -u`, and read what it changed. */
describe("a command line", () => {
  it.each([
    ["commands", parseCommand, LINES],
    ["tap-commands", parseTapCommand, TAP_LINES],
    ["flags", parseCommand, flagLines(VALUES)],
    ["tap-flags", parseTapCommand, flagLines(TAP_VALUES)],
  ])("means what golden/%s.txt says", async (name, parse, lines) => {
    const parts: string[] = [];
    for (const line of lines) parts.push(`$ ${line}`.trimEnd(), await told(parse, line));
    await expect(`${parts.join("\n")}\n`).toMatchFileSnapshot(`../golden/${name}.txt`);
  });

  it.each([
    [
      "pairs",
      parseCommand,
      {
        ...VALUES,
        "read --stream people": `${VALUES["read"]} json dry-run full-refresh`,
        reconcile: `${VALUES["reconcile"]} full`,
      },
    ],
    ["tap-pairs", parseTapCommand, { "": `${TAP_VALUES[""]} discover about`.replace("format ", "") }],
  ] as const)(
    "refuses of each flag alone and with another what golden/flag-%s.txt says",
    async (name, parse, flags) => {
      const refused = await refusedOf(parse, flags);
      await expect(`${refused.join("\n")}\n`).toMatchFileSnapshot(`../golden/flag-${name}.txt`);
    },
  );

  it("is helped with like this", async () => {
    const parts: string[] = [];
    for (const command of [...HELP, "output", "output compact", "reconcile"]) {
      const line = `${command} --help`.trim();
      parts.push(`$ ${line}`, await told(parseCommand, line));
    }
    parts.push("$ tap --help", await told(parseTapCommand, "--help"));
    await expect(`${parts.join("\n")}\n`).toMatchFileSnapshot("../golden/help.txt");
  });
});
