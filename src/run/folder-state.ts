import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { STREAMS } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { codeOf } from "../files/reason.ts";
import { isObject, type JsonObject } from "../json.ts";

/** A finished part whose windows the state covers, and the name that it gets or has got. Both lie in the stream's folder. */
export type Pending = { readonly stream: string; readonly part: string; readonly name: string };

/** What the state of a folder says of its files: the number that each stream gave last, and what is to be published. */
export type FolderState = { readonly numbers: Map<string, number>; readonly pending: readonly Pending[] };

const STREAM_NAMES: ReadonlySet<string> = new Set(STREAMS.map(({ name }) => name));

const DIGITS = 9;
const START = String.raw`\d{8}T\d{6}Z`;
const FILE = new RegExp(`^${START}-(\\d{${DIGITS}})\\.jsonl(?:\\.gz)?$`);
const FULL = new RegExp(`^full-(\\d{${DIGITS}})$`);
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
export function parseFolderState(value: unknown): FolderState {
  if (value === undefined) return { numbers: new Map(), pending: [] };
  const { numbers, pending } = isObject(value) ? value : {};
  if (!isObject(numbers) || !Array.isArray(pending) || !pending.every(isPending)) throw damagedState();
  const entries = Object.entries(numbers).filter((entry): entry is [string, number] => isNumber(entry[1]));
  if (entries.length < Object.keys(numbers).length) throw damagedState();
  return { numbers: new Map(entries), pending };
}

export const toFolderState = ({ numbers, pending }: FolderState): JsonObject => ({
  output: { numbers: Object.fromEntries(numbers), pending },
});

function isPending(value: unknown): value is Pending {
  if (!isObject(value)) return false;
  const { stream, part, name } = value;
  if (typeof stream !== "string" || typeof part !== "string" || typeof name !== "string") return false;
  return STREAM_NAMES.has(stream) && PART.test(part) && (FILE.test(name) || FULL.test(name));
}

const isNumber = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const damagedState = (): ConfigError =>
  new ConfigError(
    `Cannot use the state of the folder: "output" is not {numbers, pending} as this program writes it`,
  );

/** What this program left in the folder of a stream. */
export type Left = {
  /** Names of parts. */
  readonly parts: readonly string[];
  /** The largest number of a visible file or folder; 0 for none. */
  readonly number: number;
};

/** Looks through the folders of all streams. */
export async function findLeft(folder: string): Promise<ReadonlyMap<string, Left>> {
  const left = new Map<string, Left>();
  for (const stream of STREAM_NAMES) {
    const names = await namesIn(join(folder, stream));
    const numbers = names.map((name) => Number(FILE.exec(name)?.[1] ?? FULL.exec(name)?.[1] ?? 0));
    left.set(stream, { parts: names.filter((name) => PART.test(name)), number: Math.max(0, ...numbers) });
  }
  return left;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}
