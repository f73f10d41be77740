import type { Command } from "../../../src/cli.ts";
import type { Language } from "./verdict.ts";

/** A command line, and what its output is. */
export type Asked = {
  readonly language: Language;
  readonly command: Command;
  /** See `judgeEnded`. */
  readonly alwaysZero?: boolean;
};

type Read = Extract<Command, { kind: "read" }>;
type Tap = Extract<Command, { kind: "tap" }>;

const NO_FILES = { catalog: undefined, state: undefined };
const READ = { kind: "read", config: undefined, ...NO_FILES, streams: [], format: "airbyte" } as const;
const SYNC = { kind: "tap", mode: "sync", configs: [], ...NO_FILES, stateFile: undefined } as const;

export const readWith = (options: Partial<Read>): Asked => ({
  language: options.format === "jsonl" ? "jsonl" : "airbyte",
  command: { ...READ, ...options },
});

export const tapWith = (options: Partial<Tap>): Asked => ({
  language: options.mode === "discover" ? "text" : "singer",
  command: { ...SYNC, logLevel: undefined, format: "text", ...options },
});

export const checkWith = (config: string | undefined, exitCode: boolean): Asked => ({
  language: "check",
  command: { kind: "check", config, exitCode },
  alwaysZero: !exitCode,
});

export const discoverWith = (config: string | undefined): Asked => ({
  language: "discover",
  command: { kind: "discover", config },
});
