import { errorBody } from "./envelope.ts";
import type { FaultSpec } from "./fault.ts";

type Rewrite = (line: string) => string;

const TEXT_FIELD = /"(firstName|name)":(?:null|"(?:[^"\\]|\\.)*")/;
const SIZE_FIELD = /"(companySize|employeeCount)":(?:null|[\d.]+)/;
const KEY_FIELD = /^\{"(?:id|domain)":"[^"]*",/;
const BATCH_CHARACTERS = 65_536;

/** Faults in what a stream's lines say. Characters of wire text are bytes. */
export const LINE_FAULTS: readonly (readonly [string, FaultSpec])[] = [
  [
    "stream-failed",
    {
      kind: "lines",
      closes: true,
      description: "ends with the line STREAM_FAILED",
      rewrite: (lines, after) => endAt(lines, after, `${errorBody("STREAM_FAILED", "The stream failed")}\n`),
    },
  ],
  inserted(
    "garbage",
    "a line that is no JSON",
    "upstream connect error or disconnect/reset before headers\n",
  ),
  [
    "not-object",
    {
      kind: "lines",
      description: "a line that is JSON but no object",
      argument: { label: "JSON", type: "text", fallback: "null" },
      rewrite: (lines, after, { text }) => insertAt(lines, after, [`${text}\n`]),
    },
  ],
  [
    "long-line",
    {
      kind: "lines",
      description: "a line of so many bytes before the next line feed",
      argument: { label: "BYTES", type: "number" },
      rewrite: (lines, after, { value }) => insertAt(lines, after, longLine(value)),
    },
  ],
  oneRow("no-key", "a row without its key", (line) => line.replace(KEY_FIELD, "{")),
  oneRow("bad-utf8", "a row with bytes that are no UTF-8", withText("caf\xe9 \xff")),
  oneRow("surrogate", "a row with the escape of a lone surrogate", withText("\\ud83d")),
  oneRow("nul", "a row with the escape of a NUL", withText("a\\u0000b")),
  oneRow(
    "big-int",
    "a row with an integer above 2^53 in an extra field",
    withField('"externalId":9007199254740993'),
  ),
  oneRow("wrong-type", "a row with text in an integer field", (line) =>
    line.replace(SIZE_FIELD, '"$1":"many"'),
  ),
  [
    "new-field",
    {
      kind: "lines",
      description: "an extra field in every row from there on",
      rewrite: (lines, after) => rewriteFrom(lines, after, withField('"engagement":{"score":0.5}')),
    },
  ],
  everyRow("blank-lines", "a blank line after every row", (line) => `${line}\n`),
  everyRow("crlf", "lines that end in CR LF", (line) => `${line.slice(0, -1)}\r\n`),
  [
    "bom",
    {
      kind: "lines",
      description: "a byte order mark before the first line",
      rewrite: (lines) => insertAt(lines, 0, ["\xef\xbb\xbf"]),
    },
  ],
];

/** The lines, with something that happens when so many of them have gone. */
export function* happenAt(lines: Iterable<string>, after: number, happen: () => void): Generator<string> {
  let nth = 0;
  for (const line of lines) {
    if (nth++ === after) happen();
    yield line;
  }
  if (nth <= after) happen();
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

function withField(field: string): Rewrite {
  return (line) => `${line.slice(0, -2)},${field}}\n`;
}

function inserted(name: string, description: string, line: string): [string, FaultSpec] {
  return [name, { kind: "lines", description, rewrite: (lines, after) => insertAt(lines, after, [line]) }];
}

function oneRow(name: string, description: string, rewrite: Rewrite): [string, FaultSpec] {
  return [
    name,
    { kind: "lines", description, rewrite: (lines, after) => rewriteFrom(lines, after, rewrite, 1) },
  ];
}

function everyRow(name: string, description: string, rewrite: Rewrite): [string, FaultSpec] {
  return [name, { kind: "lines", description, rewrite: (lines) => rewriteFrom(lines, 0, rewrite) }];
}
