import { fromWire } from "../data/wire-text.ts";
import { errorBody } from "./answer.ts";
import type { FaultSpec, FaultTable } from "./fault.ts";

type Rewrite = (line: string) => string;

const TEXT_FIELD = /"(firstName|name)":(?:null|"(?:[^"\\]|\\.)*")/;
const SIZE_FIELD = /"(companySize|employeeCount)":(?:null|[\d.]+)/;
const KEY_FIELD = /^\{"(?:id|domain)":"[^"]*",/;
const BATCH_CHARACTERS = 65_536;

const inserted = (description: string, line: string): FaultSpec => ({
  kind: "lines",
  description,
  rewrite: (lines, after) => insertAt(lines, after, [line]),
});

const oneRow = (description: string, rewrite: Rewrite): FaultSpec => ({
  kind: "lines",
  description,
  rewrite: (lines, after) => rewriteFrom(lines, after, rewrite, 1),
});

const everyRow = (description: string, rewrite: Rewrite): FaultSpec => ({
  kind: "lines",
  combines: true,
  description,
  rewrite: (lines) => rewriteFrom(lines, 0, rewrite),
});

/** Faults in what a stream's lines say. Characters of wire text are bytes. */
export const LINE_FAULTS: FaultTable = {
  "stream-failed": {
    kind: "lines",
    closes: true,
    description: "ends with the line STREAM_FAILED",
    rewrite: (lines, after) => endAt(lines, after, `${errorBody("STREAM_FAILED", "The stream failed")}\n`),
  },
  garbage: inserted("a line that is no JSON", "upstream connect error or disconnect/reset before headers\n"),
  "not-object": {
    kind: "lines",
    description: "a line that is JSON but no object",
    argument: { label: "JSON", type: "text", fallback: "null" },
    rewrite: (lines, after, { text }) => insertAt(lines, after, [`${text}\n`]),
  },
  "long-line": {
    kind: "lines",
    description: "a line of BYTES before the next line feed",
    argument: { label: "BYTES", type: "number" },
    rewrite: (lines, after, { value }) => insertAt(lines, after, longLine(value)),
  },
  "no-key": {
    kind: "lines",
    description: "ROWS rows of a stream without their key",
    argument: { label: "ROWS", type: "number", fallback: "1" },
    rewrite: (lines, after, { value }) =>
      rewriteFrom(lines, after, (line) => line.replace(KEY_FIELD, "{"), value),
  },
  "bad-utf8": oneRow("a row with bytes that are no UTF-8", withText("caf\xe9 \xff")),
  surrogate: oneRow("a row with the escape of a lone surrogate", withText("\\ud83d")),
  nul: oneRow("a row with the escape of a NUL", withText("a\\u0000b")),
  "big-int": oneRow(
    "a row with an integer above 2^53 in an extra field",
    withField('"externalId":9007199254740993'),
  ),
  "wrong-type": oneRow("a row with text in an integer field", (line) =>
    line.replace(SIZE_FIELD, '"$1":"many"'),
  ),
  "new-field": {
    kind: "lines",
    description: "an extra field in every row from there on",
    rewrite: (lines, after) => rewriteFrom(lines, after, withField('"engagement":{"score":0.5}')),
  },
  "blank-lines": everyRow("a blank line after every row", (line) => `${line}\n`),
  crlf: everyRow("lines that end in CR LF", (line) => `${line.slice(0, -1)}\r\n`),
  escaped: everyRow("every character beyond ASCII as \\u and four hex digits", escaped),
  deep: {
    kind: "lines",
    description: "an extra field with lists in lists, LEVELS deep, in a row or in any other JSON body",
    argument: { label: "LEVELS", type: "number", fallback: "5000" },
    on: ["list", "stream", "job", "poll"],
    rewrite: (lines, after, { value }) =>
      rewriteFrom(lines, after, withField(`"nested":${"[".repeat(value)}${"]".repeat(value)}`), 1),
  },
  terminal: oneRow(
    "a row with a field whose name and value move a terminal's cursor, turn text round and break lines",
    withField('"\\u001b[2J\\u001b]0;title\\u0007\\u202egpj.\\n":"\\u001b[31m\\u009b2J\\r\\nlevel=ERROR"'),
  ),
  "broken-page": {
    kind: "lines",
    description: "pages whose JSON breaks off, in a body that ends properly; counts are right",
    on: ["list"],
    only: "pages",
    rewrite: (pieces) => [[...pieces].join("").slice(0, -3)],
  },
  bom: {
    kind: "lines",
    description: "a byte order mark before the first line",
    rewrite: (lines) => insertAt(lines, 0, ["\xef\xbb\xbf"]),
  },
};

/** The lines, with something that happens when a number of them have gone. */
export const happenAt = (lines: Iterable<string>, after: number, happen: () => void): Iterable<string> =>
  insertAt(lines, after, nothingBut(happen));

/** The lines, with something that happens each time that this number of them has gone. */
export function* happenEvery(
  lines: Iterable<string>,
  every: number,
  happen: (nth: number) => void,
): Generator<string> {
  let gone = 0;
  for (const line of lines) {
    yield line;
    if (++gone % every === 0) happen(gone / every);
  }
}

function* nothingBut(happen: () => void): Generator<string> {
  happen();
  yield* [];
}

function* insertAt(lines: Iterable<string>, after: number, extra: Iterable<string>): Generator<string> {
  let nth = 0;
  for (const line of lines) {
    if (nth++ === after) yield* extra;
    yield line;
  }
  if (nth <= after) yield* extra;
}

function* endAt(lines: Iterable<string>, after: number, last: string): Generator<string> {
  let nth = 0;
  for (const line of lines) {
    if (nth++ >= after) break;
    yield line;
  }
  yield last;
}

function* rewriteFrom(
  lines: Iterable<string>,
  after: number,
  rewrite: Rewrite,
  count = Infinity,
): Generator<string> {
  let nth = 0;
  for (const line of lines) {
    yield nth >= after && nth < after + count ? rewrite(line) : line;
    nth++;
  }
}

function* longLine(bytes: number): Generator<string> {
  const piece = "x".repeat(BATCH_CHARACTERS);
  for (let rest = bytes; rest > 0; rest -= piece.length)
    yield rest < piece.length ? piece.slice(0, rest) : piece;
  yield "\n";
}

function withText(text: string): Rewrite {
  return (line) => line.replace(TEXT_FIELD, `"$1":"${text}"`);
}

/** Adds a field to a row, or to the JSON object that is a body. */
function withField(field: string): Rewrite {
  return (line) => line.replace(/\}(\n?)$/, `,${field}}$1`);
}

function escaped(line: string): string {
  return fromWire(line).replace(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
