// Writes docs/limits.md: every number that bounds or paces a run, from the constants of the source and what is said of them
// there. `node scripts/limits.js --check` only compares.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = join(root, "docs/limits.md");

/** Numbers that are no limits: codes of characters, bits, places, sizes of words, versions of what is written. */
const OTHERS =
  /^(LINE_FEED|LINE_BREAK|CARRIAGE_RETURN|QUOTE|BACKSLASH|DOT|COMMA|(OPEN|CLOSE)_(LIST|OBJECT)|(IV|TAG)_BYTES|BYTES|BLOCK|COLUMN|WORDS|FLAGS|EMPTY|IS_NEW|LISTS|CHARACTERS|FORMAT|VERSION|NORMALIZATION|SEEN|BEFORE_COUNT|(UN)?DATED|OWN|NAMED|LACKING|ANSWERED|AS_TEXT|AS_NUMBER|MOVED|HELD|DIGITS|(HOUR|DAY)_MS|LONG_AGO|PAST_ALL)$/;

/** What the constants mean that have no comment, because the code around them says it. */
const MEANT = {
  "api/address.ts LONGEST_ID":
    "Characters of an id that comes from outside and becomes a part of an address.",
  "api/client.ts MOST_TRIES": "Tries of a request.",
  "api/client.ts FIRST_BACKOFF_MS":
    "The longest pause before a second try; each further pause is up to twice as long.",
  "api/client.ts LONGEST_BACKOFF_MS": "The longest pause before any try.",
  "api/client.ts UNSAID_RETRY_AFTER_MS": "The pause after a 429 that names none.",
  "api/dispatcher.ts CONNECT_TIMEOUT_MS": "How long a connection may take to be made.",
  "api/limiter.ts BURST": "Requests that may start at once.",
  "api/retry-after.ts LONGEST_MS": "The longest pause that a 429 can ask for.",
  "api/retry-after.ts SHORTEST_MS": "The shortest pause after a 429.",
  "api/stream-api.ts PAGE_SIZE": "Rows that are asked for in a page.",
  "commands/dry-run.ts MOST_RANGES": "Ranges of days that a dry run names.",
  "config/config.ts MOST_CONFIG_LEVELS": "How deep the values of a config may be nested.",
  "config/items.ts LONGEST_ITEM": "Characters of a domain or an e-mail.",
  "config/suppress.ts LINES_TOLD": "Lines that the message about a wrong file names.",
  "config/unknown.ts MOST_WARNINGS": "Unknown settings that are warned of.",
  "jobs/collect.ts ASKS_AT_ONCE": "Jobs that are asked for at once.",
  "jobs/collect.ts DENIED":
    "Jobs that the key may not read, and none that it may, after which the stream fails.",
  "jobs/failures.ts RETRIES": "Refusals for what time heals, after which nothing more is submitted.",
  "jobs/failures.ts LONGEST_LIMITED": "Milliseconds that a submission waits for the rate limit in all.",
  "jobs/inputs.ts PLACES_TOLD": "Places of unusable items that a warning names.",
  "jobs/packed.ts SMALLEST": "Items for which a table has room at first.",
  "jobs/receipts.ts COMPACT_AT": "By how many times the receipts grow before they are compacted again.",
  "jobs/receipts.ts PIECE": "Bytes of receipts that are read at once.",
  "jobs/run.ts PROGRESS_MS": "How often the log says what a run waits for.",
  "jobs/submit.ts OPEN_AT_ONCE": "Look-ups in flight once one was answered.",
  "jobs/submit.ts MOST_BEFORE_ANSWER": "Look-ups in flight until one was answered.",
  "jobs/wanted.ts UNKNOWN_TIMES": "How often `retry_unknown` submits one item.",
  "protocol/error-text.ts MAX_CAUSES": "Causes of an error that a message names.",
  "reconcile/by-counts.ts REQUESTS_PER_READ": "Requests that a range to be read is reckoned with.",
  "reconcile/key-table.ts FULLEST": "The share of a table of keys that may be full.",
  "reconcile/reconcile.ts MOST_REQUESTS": "Requests of a comparison by counts.",
  "run/outlook.ts PAGE_ROWS": "Rows of a page in what a dry run expects.",
  "run/sample.ts SAMPLE": "Rows from which the fields of a stream are learnt.",
  "run/sample.ts SAMPLE_BYTES": "Bytes of such rows.",
  "shards/cut.ts MOST_SHARDS": "Shards of a plan.",
  "state/envelopes.ts MOST_KEYS": "Keys of an unknown state that the message names.",
  "state/envelopes.ts LONGEST_KEY": "Characters of each of them.",
  "streams/checkpoints.ts FEW_PARTS": "Ranges of a window that adds few days.",
  "streams/newest-keys.ts MOST_KEYS": "Newest keys whose digests the state keeps.",
  "streams/read-pages.ts MOST_WALKS": "Walks over the pages of a window.",
  "streams/read-undated.ts SWEEPS": "Searches for people without a date at the ends of the list.",
  "streams/read-undated.ts MOST_STREAMS": "Exports that are read to find them.",
  "streams/seen-rows.ts FULLEST": "The share of a table of seen rows that may be full.",
  "streams/seen-rows.ts SMALLEST_TABLE": "Rows for which such a table has room at least.",
  "streams/seen-rows.ts GROUP_BITS":
    "Bits by which the marks of a group of passes stand beside those of a pass.",
  "streams/window-result.ts MOST_MISSING_IN_A_ROW": "Missing days in a row; one more ends the stream.",
  "streams/window-size.ts FIRST_SIZE": "Rows of a window until the service's speed is measured.",
  "streams/window-size.ts SMALLEST_SIZE": "Rows of a window at least, however slow the service is.",
  "streams/window-size.ts LARGEST_SIZE": "Rows of a window at most, however fast it is.",
};
const NUMERIC = /^[-\d_.\s*/()]+$|^[\d.]+ \* (DAY|HOUR)_MS$|^\[[\w\s,*]+\] as const$/;

function commentBefore(source, start) {
  const before = source.slice(0, start).trimEnd();
  const comment = before.endsWith("*/") ? before.slice(before.lastIndexOf("/**") + 3, -2) : "";
  const lines = comment.split("\n").map((line) => line.replace(/^\s*\*? ?/, "").trim());
  return lines.join(" ").trim();
}

/** The constants of a file: name, value and comment. */
function limitsOf(source) {
  let last = { end: -1, said: "" };
  return parseAst(source, { lang: "ts" }).body.flatMap((node) => {
    const { type, kind, declarations = [] } = node.declaration ?? node;
    if (type !== "VariableDeclaration" || kind !== "const") return [];
    // A comment holds for all constants below it up to the next empty line.
    const said = node.start === last.end + 1 ? last.said : commentBefore(source, node.start);
    last = { end: node.end, said };
    return declarations.flatMap(({ id, init }) => {
      const value = init && source.slice(init.start, init.end);
      return value && NUMERIC.test(value) && !OTHERS.test(id.name) ? [{ name: id.name, value, said }] : [];
    });
  });
}

/** A number as a person reads it, and what it is made of. */
const shown = (value) => value.replace(/ as const$/, "").replace(/(?<=\d)_(?=\d)/g, ",");

const files = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => join(entry.parentPath, entry.name).slice(root.length).replaceAll("\\", "/"))
  .sort();
const limits = files.flatMap((file) =>
  limitsOf(readFileSync(join(root, file), "utf8")).map((limit) => ({ file: file.slice(4), ...limit })),
);
const rows = limits.map(({ file, name, value, said }) => {
  const meant = MEANT[`${file} ${name}`] ?? said;
  if (meant === "")
    throw new Error(`scripts/limits.js: say what ${name} of src/${file} means, there or in MEANT`);
  return `| \`${file}\` | \`${name}\` | ${shown(value)} | ${meant} |`;
});
const stale = Object.keys(MEANT).filter(
  (known) => !limits.some(({ file, name }) => `${file} ${name}` === known),
);
if (stale.length > 0) throw new Error(`scripts/limits.js: MEANT names what is gone: ${stale.join(", ")}`);
const text = `# Limits

<!-- generated by: scripts/limits.js -->

This page is for whoever asks how much, how often or how long: every number that bounds or paces a run, as it stands in
\`src/\`. Settings have their own defaults and bounds: see [spec.json](../spec.json). A name that ends in \`_MS\` is a time in
milliseconds.

| file | name | value | what it means |
| --- | --- | --- | --- |
${rows.join("\n")}
`;

if (process.argv.includes("--check")) {
  if (readFileSync(page, "utf8") !== text) {
    console.error("docs/limits.md is not what the source says: run npm run docs");
    process.exitCode = 1;
  }
} else writeFileSync(page, text);
