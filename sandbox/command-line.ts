import { parseArgs } from "node:util";
import type { Plan } from "./data/account.ts";
import { describeFaults } from "./faults/faults.ts";

/** The request of a command line. */
export type Command =
  | ({ readonly kind: "serve" } & Served)
  | { readonly kind: "demo" }
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "version" };

export type Served = {
  readonly port: number;
  readonly people: number;
  readonly seed: number;
  /** 0: no limit. */
  readonly requestsPerMinute: number;
  readonly faults: readonly string[];
  /** The plan of the key: Enterprise lists people, Agency checks e-mails. */
  readonly plan: Plan;
};

/** A command line that cannot be run. */
export class UsageError extends Error {}

const NAME = "contact-intelligence-sandbox";
const MOST_PEOPLE = 1_000_000_000;
const PLANS: readonly Plan[] = ["enterprise", "agency"];

/** Options that take a number: the default, the largest, and the line of help. */
const NUMBERS = {
  port: [8080, 65_535, "port on 127.0.0.1; 0: any free one [default: 8080]"],
  people: [
    1000,
    MOST_PEOPLE,
    "number of people [default: 1000]; 3 without a date, 50 companies and 5 sources come with them",
  ],
  seed: [
    1,
    2 ** 31,
    "makes other data over other years; they are another account, with another key [default: 1]",
  ],
  "requests-per-minute": [
    0,
    MOST_PEOPLE,
    "answers 429 to more, as the service does to more than 60; 0: no limit [default: 0]",
  ],
} as const;

const OPTIONS = {
  port: { type: "string" },
  people: { type: "string" },
  seed: { type: "string" },
  "requests-per-minute": { type: "string" },
  plan: { type: "string", default: "enterprise" },
  fault: { type: "string", multiple: true },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
} as const;

/** Parses a command line. Throws UsageError. */
export function parseCommand(args: readonly string[]): Command {
  const { values, positionals } = parsed(args);
  if (values.help) return { kind: "help", text: positionals[0] === "faults" ? faultHelp() : help() };
  if (values.version) return { kind: "version" };
  const [word, ...rest] = positionals;
  if (word === "demo" && args.length === 1) return { kind: "demo" };
  if (word === "demo") throw new UsageError("The demo takes no options");
  if (word !== undefined)
    throw new UsageError(`Unknown argument: ${[word, ...rest].join(" ")}. See ${NAME} --help`);
  const plan = PLANS.find((name) => name === values.plan);
  if (plan === undefined) throw new UsageError(`Cannot use --plan: it must be ${PLANS.join(" or ")}`);
  return {
    kind: "serve",
    port: numberOf("port", values.port),
    people: numberOf("people", values.people),
    seed: numberOf("seed", values.seed),
    requestsPerMinute: numberOf("requests-per-minute", values["requests-per-minute"]),
    faults: values.fault ?? [],
    plan,
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // The parser's first sentence names the option; the rest explains how to write other options.
    const [what] = (error as Error).message.split(/\.\s/);
    throw new UsageError(`${what}. See ${NAME} --help`);
  }
}

function numberOf(name: keyof typeof NUMBERS, text: string | undefined): number {
  const [usual, most] = NUMBERS[name];
  const value = text === undefined ? usual : Number(text === "" ? Number.NaN : text);
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new UsageError(`Cannot use --${name}: it must be a whole number from 0 to ${most}`);
}

/** Columns of the help: where descriptions begin, and where they end. */
const BEGIN = 28;
const END = 77;

function help(): string {
  return [
    `${NAME} [options]   run a stand-in for the service`,
    `${NAME} demo        read into files, repair a cut export`,
    "",
    "Options:",
    ...Object.entries(NUMBERS).flatMap(([name, [, , what]]) => described(`--${name}=N`, what)),
    ...described("--plan=PLAN", "enterprise lists people [default], agency checks e-mails"),
    ...described("--fault=FAULT", "what goes wrong (see --help faults); repeatable"),
    ...described("-h, --help", "show this help"),
    ...described("-v, --version", "show the version"),
  ].join("\n");
}

function faultHelp(): string {
  return [
    "Faults, for --fault or for one request in its header X-Sandbox-Fault.",
    "Each may be followed by:",
    ...described(":path=TEXT", "strikes requests whose path contains this text; TEXT$: ends with it"),
    ...described(":times=N", "strikes N requests; always: all"),
    ...described(":skip=N", "lets N requests pass first"),
    ...described(":after=ROWS", "strikes after this number of rows; all: after the last one"),
    ...described(":from=DAY, :to=DAY", "strikes requests for these days; none: requests that name none"),
    ...described(":of=rows", "strikes exports and pages, but no counts (limit=1)"),
    "For example: --fault end:times=2 --fault recheck=5:times=always",
    "",
    ...describeFaults().flatMap(({ usage, description }) => described(usage, description)),
  ].join("\n");
}

/** A term next to its description, or above it where it is too long. */
function described(term: string, description: string): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of description.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > END - BEGIN) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  const [first = "", ...rest] = [...lines, line].map((text) => " ".repeat(BEGIN) + text);
  const head = `  ${term}`;
  const isLong = head.length >= BEGIN;
  return isLong ? [head, first, ...rest] : [head + first.slice(head.length), ...rest];
}
