import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";
import { streamOfKey } from "../state/envelopes.ts";
import type { StreamState } from "../sync/event.ts";
import { codeOf } from "./files/reason.ts";
import { publish, syncFolder } from "./files/replace.ts";
import type { StateFile } from "./state-file.ts";

/** The form of all files of a run. */
export type FileForm = {
  /** When the run began, as names of files have it: `20260122T030405Z`. */
  readonly start: string;
  readonly gzip: boolean;
  /** How many bytes of covered rows are enough for a commit. */
  readonly commitBytes: number;
};

/** A finished part and the name that it gets. Both are in the stream's folder. */
export type NamedPart = { readonly part: string; readonly name: string };

/** `output` of a folder's state.json. docs/dev/folder.md describes the format. */
export type FolderState = {
  readonly version: 1;
  /** The largest number that a file of each stream has. */
  readonly numbers: Record<string, number>;
  /** The folder has a sample: at most this many rows of each stream. Undefined: all rows. */
  readonly sample?: number | undefined;
  /** The settings of privacy under which the last run wrote files. */
  readonly privacy?: JsonObject | undefined;
  /** Rows of the stream `key` that are about to become visible, and the state that counts once they are; null: a sample. */
  readonly pending: {
    readonly key: string;
    readonly state: StreamState | null;
    readonly files: readonly NamedPart[];
  } | null;
};

const STREAM_NAMES: ReadonlySet<string> = new Set(STREAMS.map(({ name }) => name));

const START = String.raw`\d{8}T\d{6}Z`;
const VISIBLE = new RegExp(
  String.raw`^(?:${START}-(\d{9})-[a-z_]+(?:-[0-9a-z_-]+)?\.jsonl(?:\.gz)?|full-(\d{9}))$`,
);
const PART = new RegExp(`^\\.(?:${START}|full)-[0-9a-f]{16}\\.part$`);

/** @param epochMs the start of a run */
export const startName = (epochMs: number): string =>
  new Date(epochMs).toISOString().replace(/\.\d+|[-:]/g, "");

const padded = (number: number): string => String(number).padStart(9, "0");

/** `20260122T030405Z-000000007-people-2026-01-01_2026-01-09.jsonl`. @param span the days of its rows, if they have any */
export const fileName = (
  { start, gzip }: FileForm,
  number: number,
  stream: string,
  span: string | undefined,
): string => `${[start, padded(number), stream, span].filter(Boolean).join("-")}.jsonl${gzip ? ".gz" : ""}`;

export const fullName = (number: number): string => `full-${padded(number)}`;

/** A name that no other part has. @param start of the run, or `full` for a folder */
export const newPartName = (start: string): string => `.${start}-${randomBytes(8).toString("hex")}.part`;

/** Reads `output` of a state. Throws ConfigError for all that this version does not write. */
function parseFolderState(folder: string, value: unknown): FolderState {
  if (value === undefined) return { version: 1, numbers: {}, pending: null };
  const { version, sample } = objectOf(value);
  const refuse = (why: string): ConfigError => new ConfigError(`Cannot use the folder "${folder}": ${why}`);
  if (isObject(value) && version === undefined)
    throw refuse("a build before 1.0 wrote it. Read on with the build tagged 0.1, or choose a new folder");
  if (isObject(value) && version !== 1)
    throw refuse(`its format is ${version}, and this build knows format 1. Use a newer build`);
  if (sample !== undefined) throw refuse("it has a sample of read --limit. Choose another folder");
  if (!isFolderState(value))
    throw refuse("its state.json is damaged: output is not as docs/dev/folder.md describes it");
  return value;
}

function isFolderState(value: unknown): value is FolderState {
  const { numbers, pending } = objectOf(value);
  const isNumber = (number: unknown): boolean => Number.isSafeInteger(number) && Number(number) >= 0;
  if (!isObject(numbers) || !Object.values(numbers).every(isNumber)) return false;
  if (pending === null) return true;
  const { key, state, files } = objectOf(pending);
  const isNamed = typeof key === "string" && STREAM_NAMES.has(streamOfKey(key));
  return isNamed && (state === null || isObject(state)) && Array.isArray(files) && files.every(isNamedPart);
}

function isNamedPart(file: unknown): boolean {
  const { part, name } = objectOf(file);
  return PART.test(String(part)) && VISIBLE.test(String(name));
}

/** Makes the files of a pending commit visible, and then saves its state. May be done twice. Throws the system's errors as they are. */
export async function finish(folder: string, file: StateFile, output: FolderState): Promise<void> {
  if (output.pending === null) return;
  const { key, state, files } = output.pending;
  const path = join(folder, streamOfKey(key));
  for (const { part, name } of files) await publish(join(path, part), join(path, name));
  if (files.length > 0) await syncFolder(path);
  await file.save(key, state, { output: { ...output, pending: null } });
}

/** Finishes the commit of a killed run and removes other parts. Throws ConfigError, and the system's errors. */
export async function recover(folder: string, file: StateFile): Promise<FolderState> {
  const output = parseFolderState(folder, file.saved.rest["output"]);
  const numbers = { ...output.numbers };
  // A killed run may have replaced the state without a sync. A power cut would undo that, but not the files that appear here.
  await syncFolder(folder);
  await finish(folder, file, output);
  for (const stream of STREAM_NAMES) {
    const names = await namesIn(join(folder, stream));
    const parts = names.filter((name) => PART.test(name));
    for (const part of parts) await rm(join(folder, stream, part), { recursive: true, force: true });
    if (parts.length > 0) await syncFolder(join(folder, stream));
    const largest = Math.max(0, ...names.map(numberOf));
    // The state does not know these files. A number that no file has ends the search for known rows.
    if (largest > (numbers[stream] ?? 0)) numbers[stream] = largest + 1;
  }
  return { version: 1, numbers, pending: null };
}

/** The number in the name of a file or folder that a run has published; 0 for any other name. */
export function numberOf(name: string): number {
  const [, file, full] = VISIBLE.exec(name) ?? [];
  return Number(file ?? full ?? 0);
}

/** The names in a folder; none if it is not there. */
export const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
    return [];
  });

/**
 * The rest of a folder's state after which the next run writes all rows that it reads. Throws ConfigError while a commit is
 * pending. @param rest all of the state besides the streams
 */
export function forgetFiles(path: string, rest: JsonObject, stream: string): JsonObject {
  if (rest["output"] === undefined) return {};
  const output = parseFolderState(path, rest["output"]);
  if (output.pending !== null)
    throw new ConfigError(
      `Cannot change "${path}": a run was killed in the middle. Read into its folder again first`,
    );
  const numbers = { ...output.numbers, [stream]: (output.numbers[stream] ?? 0) + 1 };
  return { output: { ...output, numbers } };
}
