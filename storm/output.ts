import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Contestant } from "./contestant.ts";

/** A row as a destination that merges by key sees it. */
export type DeliveredRow = { readonly id: string; readonly discoveredAt: string | null };

/** What came out of a run. */
export type Output = {
  /** In the order in which they came. */
  readonly rows: readonly DeliveredRow[];
  /** Delivered objects without an id. */
  readonly junk: number;
  /** Messages at the level of a warning or above. */
  readonly complaints: readonly string[];
  /** What the next run is given as its state; undefined: nothing new. */
  readonly state: unknown;
};

type Message = {
  readonly type?: string;
  readonly record?: unknown;
  readonly state?: { readonly type?: string; readonly data?: unknown };
  readonly log?: { readonly level: string; readonly message: string };
  readonly trace?: { readonly type: string; readonly error?: { readonly message: string } };
  readonly value?: unknown;
};

/** Reads what a contestant wrote. Half a line at the end, of a run that was killed, says nothing. */
export function readOutput(
  { speaks, complaint, cursor = "discoveredAt" }: Pick<Contestant, "speaks" | "complaint" | "cursor">,
  {
    stdout,
    stderr,
    files = "",
  }: { readonly stdout: string; readonly stderr: string; readonly files?: string },
): Output {
  const messages = speaks === "files" ? [] : linesOf(stdout).flatMap(parsed<Message>);
  const objects =
    speaks === "files"
      ? linesOf(files).flatMap(parsed<unknown>)
      : messages.flatMap(({ type, record }) => (type === "RECORD" ? [record] : []));
  const data = objects.map((row) => (speaks === "airbyte" ? (row as { readonly data: unknown }).data : row));
  const rows = data.flatMap((row) => toRow(row, cursor));
  const said =
    complaint === undefined ? [] : linesOf(`${stderr}\n`).filter((line) => new RegExp(complaint).test(line));
  return {
    rows,
    junk: data.length - rows.length,
    complaints: [...messages.flatMap(complaintOf), ...said],
    state: messages
      .filter(({ type }) => type === "STATE")
      .map(stateOf)
      .at(-1),
  };
}

const linesOf = (text: string): readonly string[] => text.split("\n").slice(0, -1);

function parsed<Value>(line: string): Value[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? [value as Value] : [];
  } catch {
    return [];
  }
}

function toRow(row: unknown, cursor: string): DeliveredRow[] {
  if (typeof row !== "object" || row === null) return [];
  const { id, [cursor]: date } = row as Readonly<Record<string, unknown>>;
  if (typeof id !== "string") return [];
  return [{ id, discoveredAt: typeof date === "string" ? new Date(date).toISOString() : null }];
}

/** Airbyte's messages say their level. */
function complaintOf({ type, log, trace }: Message): readonly string[] {
  if (type === "LOG" && log !== undefined && /^(WARN|ERROR|FATAL)/.test(log.level)) return [log.message];
  if (type === "TRACE" && trace?.type === "ERROR") return [trace.error?.message ?? "an error"];
  return [];
}

/** Airbyte's platform keeps the newest state of the one stream; a target of Singer the newest value. */
function stateOf({ state, value }: Message): unknown {
  if (value !== undefined) return value;
  return state?.type === "STREAM" ? [state] : state?.data;
}

/** What tells two versions of files apart, by path. */
export type Snapshot = ReadonlyMap<string, string>;

export function snapshotOf(folder: string): Snapshot {
  const paths = walk(folder);
  return new Map(paths.map((path) => [path, `${statSync(path).mtimeMs} ${statSync(path).size}`]));
}

/** The text of the files that were written since, in the order of their names. */
export function writtenSince(folder: string, before: Snapshot): string {
  const written = [...snapshotOf(folder)].filter(([path, version]) => before.get(path) !== version);
  return written.map(([path]) => readFileSync(path, "utf8").replace(/\n?$/, "\n")).join("");
}

function walk(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.jsonl$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
  } catch {
    return [];
  }
}
