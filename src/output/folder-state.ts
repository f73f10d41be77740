import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";
import { streamOfKey } from "../state/envelopes.ts";
import type { StreamState } from "../sync/event.ts";
import { unlessMissing } from "./files/reason.ts";
import { publish, syncFolder } from "./files/replace.ts";
import type { StateFile } from "./state-file.ts";

export type FileForm = {
  /** The start of the run (epoch ms). */
  readonly startedAt: number;
  readonly gzip: boolean;
  /** The bytes of covered rows after which a commit is due. */
  readonly commitBytes: number;
};

/** A finished part and its next name, both in the folder of the stream. */
export type NamedPart = { readonly part: string; readonly name: string };

/** The value of `output` in state.json of a folder. docs/dev/folder.md describes the format. */
export type FolderState = {
  readonly version: 1;
  /** The largest number in the names of files, for each stream. */
  readonly numbers: Record<string, number>;
  /** The largest number of rows of each stream in a sample; undefined: all rows. */
  readonly sample?: number | undefined;
  readonly privacy?: JsonObject | undefined;
  /** The next visible files of the stream `key`, and the state after them (null: a sample). */
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

/** The start of a run in names of files: `20260122T030405Z`. */
const startName = (epochMs: number): string => new Date(epochMs).toISOString().replace(/\.\d+|[-:]/g, "");

const padded = (number: number): string => String(number).padStart(9, "0");

/** `20260122T030405Z-000000007-people-2026-01-01_2026-01-09.jsonl`. @param span the days of the rows; undefined: no days */
export const fileName = (
  { startedAt, gzip }: FileForm,
  number: number,
  stream: string,
  span: string | undefined,
): string =>
  `${[startName(startedAt), padded(number), stream, span].filter(Boolean).join("-")}.jsonl${gzip ? ".gz" : ""}`;

export const fullName = (number: number): string => `full-${padded(number)}`;

/** A unique hidden name of a file; without a form, of a folder. */
export const newPartName = (form?: FileForm): string =>
  `.${form === undefined ? "full" : startName(form.startedAt)}-${randomBytes(8).toString("hex")}.part`;

/** Reads `output` of a state. Throws ConfigError for an unknown version, a sample or a damaged value. */
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

/** Makes the files of a pending commit visible, then saves the state. A second call is safe. Throws errors of the system. */
export async function finish(folder: string, file: StateFile, output: FolderState): Promise<void> {
  if (output.pending === null) return;
  const { key, state, files } = output.pending;
  const path = join(folder, streamOfKey(key));
  for (const { part, name } of files) await publish(join(path, part), join(path, name));
  if (files.length > 0) await syncFolder(path);
  await file.save(key, state, { output: { ...output, pending: null } });
}

/** Finishes the commit of a killed run and removes all remaining parts. Throws ConfigError, and errors of the system. */
export async function recover(folder: string, file: StateFile): Promise<FolderState> {
  const output = parseFolderState(folder, file.saved.rest["output"]);
  const numbers = { ...output.numbers };
  // A killed run may have replaced the state without a sync. The state must be on the disk before its files are visible.
  await syncFolder(folder);
  await finish(folder, file, output);
  for (const stream of STREAM_NAMES) {
    const names = await namesIn(join(folder, stream));
    const parts = names.filter((name) => PART.test(name));
    for (const part of parts) await rm(join(folder, stream, part), { recursive: true, force: true });
    if (parts.length > 0) await syncFolder(join(folder, stream));
    const largest = Math.max(0, ...names.map(numberOf));
    // A file has a larger number than the state knows. The program skips one number, and the gap ends the search for known rows.
    if (largest > (numbers[stream] ?? 0)) numbers[stream] = largest + 1;
  }
  return { version: 1, numbers, pending: null };
}

/** The number in the name of a published file or folder; 0 for other names. */
export function numberOf(name: string): number {
  const [, file, full] = VISIBLE.exec(name) ?? [];
  return Number(file ?? full ?? 0);
}

/** The names in a folder; empty if the folder does not exist. */
export const namesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(unlessMissing)) ?? [];

/** Skips a file number, so that the next run knows no rows and writes all rows. Throws ConfigError while a commit is pending. */
export function forgetFiles(path: string, rest: JsonObject, stream: string): JsonObject {
  if (rest["output"] === undefined) return {};
  const output = parseFolderState(path, rest["output"]);
  if (output.pending !== null)
    throw new ConfigError(`Cannot change "${path}": its run was killed. Read into its folder again first`);
  const numbers = { ...output.numbers, [stream]: (output.numbers[stream] ?? 0) + 1 };
  return { output: { ...output, numbers } };
}
