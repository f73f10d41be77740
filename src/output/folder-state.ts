import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { isObject } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";
import { codeOf } from "./files/reason.ts";
import { publish, removeLeftovers, syncFolder } from "./files/replace.ts";
import { extendManifest, isManifestFile, type ManifestFile, manifestPath, readManifest } from "./manifest.ts";

/** A finished part whose windows the state covers, and the name that it gets or has got. Both lie in the stream's folder. */
export type Pending = {
  readonly stream: string;
  readonly part: string;
  readonly name: string;
  /** What it holds, for the manifest; undefined in states of versions that had none. */
  readonly files?: readonly ManifestFile[];
  /** The names of files in the folder whose rows it has, and which go once it is there. */
  readonly replaces?: readonly string[];
};

/** What the state of a folder says of its files: the number that each stream gave last, and what is to be published. */
type FolderState = { readonly numbers: Map<string, number>; readonly pending: readonly Pending[] };

/** The number that each stream gave last, and all that was published. */
export type FolderFiles = {
  readonly numbers: Map<string, number>;
  readonly manifest: readonly ManifestFile[];
};

const STREAM_NAMES: ReadonlySet<string> = new Set(STREAMS.map(({ name }) => name));

const DIGITS = 9;
const START = String.raw`\d{8}T\d{6}Z`;
/** The names of what is published. */
const VISIBLE = new RegExp(`^(?:${START}-(\\d{${DIGITS}})\\.jsonl(?:\\.gz)?|full-(\\d{${DIGITS}}))$`);
/** The names of our parts, which nothing else is taken for. */
const PART = new RegExp(`^\\.(?:${START}|full)-[0-9a-f]{16}\\.part$`);

export const fileName = (
  { start, gzip }: { readonly start: string; readonly gzip: boolean },
  number: number,
): string => `${start}-${padded(number)}.jsonl${gzip ? ".gz" : ""}`;

export const fullName = (number: number): string => `full-${padded(number)}`;

/** A name that no other part has. @param start of the run, or `full` for a folder */
export const newPartName = (start: string): string => `.${start}-${randomBytes(8).toString("hex")}.part`;

/** A moment as it stands in the name of a file, to the second: `20260122T030405Z`. */
export const startName = (epochMs: number): string =>
  new Date(epochMs).toISOString().replace(/\.\d+|[-:]/g, "");

const padded = (number: number): string => String(number).padStart(DIGITS, "0");

/** Reads `output` of a state. Throws ConfigError for names that this program does not give. */
function parseFolderState(value: unknown): FolderState {
  if (value === undefined) return { numbers: new Map(), pending: [] };
  const { numbers, pending } = isObject(value) ? value : {};
  if (!isObject(numbers) || !Array.isArray(pending) || !pending.every(isPending)) throw damagedState();
  const entries = Object.entries(numbers) as [string, number][];
  if (!entries.every(([, number]) => Number.isSafeInteger(number) && number >= 0)) throw damagedState();
  return { numbers: new Map(entries), pending };
}

function isPending(value: unknown): value is Pending {
  if (!isObject(value)) return false;
  const { stream, part, name, files = [], replaces = [] } = value;
  if (typeof stream !== "string" || typeof part !== "string" || typeof name !== "string") return false;
  if (!Array.isArray(files) || !files.every(isManifestFile)) return false;
  if (!Array.isArray(replaces) || !replaces.every((name) => VISIBLE.test(name))) return false;
  return STREAM_NAMES.has(stream) && PART.test(part) && VISIBLE.test(name);
}

const damagedState = (): ConfigError =>
  new ConfigError(
    `Cannot use the state of the folder: "output" is not {numbers, pending} as this program writes it`,
  );

/**
 * Finishes what a killed run left in a folder: publishes what is pending and removes all other parts.
 * Returns the largest number that each stream gave, and the folder's manifest. Throws ConfigError, and the system's errors as they are.
 * @param output what the folder's state says of its files
 */
export async function recover(folder: string, output: unknown): Promise<FolderFiles> {
  const { numbers, pending } = parseFolderState(output);
  // A run that was killed may have replaced the state and not synced its folder: what is published here would outlive it.
  await syncFolder(folder);
  await removeLeftovers(manifestPath(folder));
  const manifest = await publishAll(folder, pending, await readManifest(folder));
  for (const stream of STREAM_NAMES) {
    const names = await entriesIn(join(folder, stream));
    const parts = names.filter((name) => PART.test(name));
    for (const part of parts) await rm(join(folder, stream, part), { recursive: true, force: true });
    if (parts.length > 0 || pending.some((file) => file.stream === stream))
      await syncFolder(join(folder, stream));
    const visible = names
      .map((name) => VISIBLE.exec(name) ?? [])
      .map(([, file, full]) => Number(file ?? full ?? 0));
    const largest = Math.max(0, ...visible);
    if (largest > (numbers.get(stream) ?? 0)) numbers.set(stream, largest);
  }
  return { numbers, manifest };
}

/** The names of the files of a stream, oldest first, without those in folders. */
export async function visibleFiles(folder: string, stream: string): Promise<readonly string[]> {
  const numberOf = (name: string): number => Number(VISIBLE.exec(name)?.[1] ?? Number.NaN);
  const names = (await entriesIn(join(folder, stream))).filter((name) => numberOf(name) >= 0);
  return names.sort((a, b) => numberOf(a) - numberOf(b));
}

const entriesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
    return [];
  });

/** Names what a state covers in the folder's manifest, which it returns, and then makes it visible. */
export async function publishAll(
  folder: string,
  pending: readonly Pending[],
  known: readonly ManifestFile[],
  sample?: number,
): Promise<readonly ManifestFile[]> {
  const files = pending.flatMap((one) => one.files ?? []);
  const replaced = pending.flatMap(({ stream, replaces = [] }) =>
    replaces.map((name) => `${stream}/${name}`),
  );
  const manifest = await extendManifest(folder, known, files, replaced, sample);
  for (const { stream, part, name, replaces = [] } of pending) {
    const isThere = await publish(join(folder, stream, part), join(folder, stream, name));
    if (!isThere || replaces.length === 0) continue;
    await syncFolder(join(folder, stream));
    for (const old of replaces) await rm(join(folder, stream, old), { force: true });
  }
  return manifest;
}
