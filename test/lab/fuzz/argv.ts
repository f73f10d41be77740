import type { Command } from "../../../src/cli.ts";
import { CONNECTOR, TAP } from "../../support/cli.ts";

/** The words of the command line that asks for a command. Its program first. */
export function argvOf({ kind, ...options }: Command): readonly string[] {
  const { mode, states = [], file, ...flags } = options as Flags;
  const words = Object.entries(flags).flatMap(([name, value]) => flagOf(NAMES[name] ?? kebab(name), value));
  if (kind === "tap") return [TAP, ...words, ...(mode === "sync" ? [] : [`--${mode}`])];
  const places = [...states, ...(file === undefined ? [] : [file])];
  return [CONNECTOR, ...(WORDS[kind] ?? [kind]), ...words, ...places];
}

type Flags = {
  readonly [name: string]: unknown;
  readonly mode?: string;
  readonly states?: readonly string[];
  readonly file?: string;
};

/** Flags whose lists have another name. */
const NAMES: Readonly<Record<string, string>> = { configs: "config", streams: "stream", plans: "plan" };
const WORDS: Readonly<Record<string, readonly string[]>> = {
  state: ["state", "show"],
  "state-merge": ["state", "merge"],
};

function flagOf(name: string, value: unknown): readonly string[] {
  if (value === undefined || value === false) return [];
  if (value === true) return [`--${name}`];
  return [value].flat().flatMap((one) => [`--${name}`, String(one)]);
}

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
