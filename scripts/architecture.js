// Writes docs/architecture.md: the folders of src/ and the way of a row, drawn from the imports.
// `node scripts/architecture.js --check` only compares.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = join(root, "docs/architecture.md");

/** What each part is for. A folder without a line here stops the script. */
const PARTS = {
  commands: "one file a command: what `check`, `discover`, `read`, `init` and the others do",
  run: "what a run opens and closes: session, streams one by one, output, progress",
  streams: "the core: plan, windows, proof, checkpoints. Values only, no files, no sockets, no clock",
  reconcile: "compares a table with the service: its keys, numbers by day, what differs",
  shards: "one account in several shards: where to cut, the plan, the union of states",
  jobs: "look-ups and e-mail checks, which cost credits: schedule, receipts, results",
  api: "the edge to the service: requests, limits, errors, rows out of bytes",
  state: "states of every platform and version, and what a run resumes from",
  catalog: "streams, their schemas, what was selected, what may leave",
  config: "settings: one description (spec.json), parsed once",
  protocol: "events in, text out: Airbyte, Singer, JSON lines; masking of secrets",
  files: "lock, atomic replacement, and the folder of `read --output`",
};

/** The way of a row: from the command, where each of these is reached. */
const START = "commands/read.ts";
const STATIONS = {
  "streams/read-window.ts": "decides what counts as read",
  "api/client.ts": "talks to the service",
  "state/envelopes.ts": "reads the state",
  "protocol/writer.ts": "writes lines",
};

const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .map((name) => name.replaceAll("\\", "/"))
  .filter((name) => name.endsWith(".ts"))
  .sort();

/** The files that each file imports, types left out. */
const imports = new Map(
  files.map((file) => {
    const text = readFileSync(join(root, "src", file), "utf8");
    const found = text.matchAll(
      /^(?:import|export) (?!type )[^;]*?from "(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm,
    );
    return [
      file,
      [...found]
        .map(([, fixed, lazy]) => posix.join(dirname(file), fixed ?? lazy))
        .filter((target) => !target.startsWith("..")),
    ];
  }),
);

const partOf = (file) => (file.includes("/") ? file.split("/")[0] : undefined);

/** Which folders import which. */
function folderArrows() {
  const arrows = new Map();
  for (const [file, targets] of imports) {
    const from = partOf(file);
    if (from === undefined) continue;
    if (!Object.hasOwn(PARTS, from))
      throw new Error(`Cannot draw src/${from}: scripts/architecture.js does not know it`);
    const others = targets.map(partOf).filter((to) => to !== undefined && to !== from);
    arrows.set(from, new Set([...(arrows.get(from) ?? []), ...others]));
  }
  return arrows;
}

/** The arrows that do not follow from others: a to c is left out where a leads to b and b leads to c. */
function direct(arrows) {
  const reaches = (from, to) =>
    [...(arrows.get(from) ?? [])].some((next) => next === to || reaches(next, to));
  return [...arrows].flatMap(([from, targets]) =>
    [...targets]
      .filter((to) => ![...targets].some((other) => other !== to && reaches(other, to)))
      .map((to) => [from, to]),
  );
}

/** The shortest chain of imports from one file to another. */
function chain(from, to) {
  const cameFrom = new Map([[from, undefined]]);
  for (const file of cameFrom.keys())
    for (const next of imports.get(file) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, file);
  if (!cameFrom.has(to)) throw new Error(`Cannot draw the way of a row: ${from} does not lead to ${to}`);
  const files = [];
  for (let file = to; file !== undefined; file = cameFrom.get(file)) files.unshift(file);
  return files;
}

const id = (file) => file.replace(/\.ts$/, "").replaceAll(/\W/g, "_");
const byText = (a, b) => (a < b ? -1 : 1);

function folderPicture() {
  const lines = direct(folderArrows()).map(([from, to]) => `  ${from} --> ${to}`);
  return ["```mermaid", "flowchart TD", ...lines.sort(byText), "```"].join("\n");
}

function rowPicture() {
  const chains = Object.keys(STATIONS).map((station) => chain(START, station));
  const nodes = [...new Set(chains.flat())].map((file) => {
    const says = STATIONS[file] === undefined ? "" : `<br/><i>${STATIONS[file]}</i>`;
    return `  ${id(file)}["${file}${says}"]`;
  });
  const arrows = chains.flatMap((chained) =>
    chained.slice(1).map((file, at) => `  ${id(chained[at])} --> ${id(file)}`),
  );
  return ["```mermaid", "flowchart LR", ...nodes, ...new Set(arrows), "```"].join("\n");
}

const text = `# Architecture

For whoever changes the code. Three sentences carry it:

1. A stream's state is the days that are covered and the holes in them; a run reads the holes, then what is new.
2. A paid item is one entry in one book; state and receipts are copies of the book, and one \`join\` brings them together.
3. Everything leaves through one sink, which also knows what was saved.

Both pictures are drawn from the imports by \`npm run docs\`; a test compares.

## The folders

An arrow means "imports", and arrows point down only. An arrow that follows from others is left out.
\`errors\`, \`fingerprint\`, \`json\`, \`json-schema\`, \`latin1\`, \`plural\`, \`time\` and \`package-file\` stand below all folders.

${folderPicture()}

| folder | what is in it |
| --- | --- |
${Object.entries(PARTS)
  .filter(([name]) => files.some((file) => partOf(file) === name))
  .map(([name, what]) => `| \`src/${name}\` | ${what} |`)
  .join("\n")}

\`test/unit/architecture.test.ts\` holds the table of what each part may import, forbids circles, and gives each npm library
one home. [Decisions](decisions/) says why things are as they are.

## The way of a row

\`main.ts\` parses the command line and calls \`${START}\`. From there, these files lead to where a row is asked for,
judged and written:

${rowPicture()}

1. The API reads bytes from the socket, cuts them into lines and checks each line's shape. It yields batches: rows, and
   what these rows taught (new fields, contradictions, rows without a key).
2. The core counts a window, reads it, and compares. Rows are passed on as they come; the proof decides only whether the
   window counts as read.
3. The days of a proven window join those that the state covers, in whatever order windows end. The checkpoint that says so
   follows the rows that it covers.
4. The windows of a stream are read in parallel. \`streams/merge.ts\` hands their batches over to one generator, one batch
   at a time: a window goes on once its batch has been written.
5. \`streamEvents()\` in \`run/read-stream.ts\` passes on the events of every stream, of rows or of jobs. \`run/outgoing.ts\`
   drops and hashes fields there, and reports what the rows taught.
6. The sink (\`run/sink.ts\`) takes every event: to stdout, where the protocol turns it into text, or into the files of a
   folder. The bytes of a record leave as they came from the socket, unless a field is dropped or hashed. A checkpoint is saved
   only when the rows before it have left. The writer waits for its reader.
`;

if (process.argv.includes("--check")) {
  if (readFileSync(page, "utf8") !== text) {
    console.error("docs/architecture.md is not what the imports say: run npm run docs");
    process.exitCode = 1;
  }
} else writeFileSync(page, text);
