import type { LogLevel } from "../protocol/log.ts";

/** What a Singer command line asks for. */
export type TapOptions = {
  readonly face: "discover" | "about" | "test" | "sync";
  /** Merged in order; `ENV` stands for the environment. */
  readonly configs: readonly string[];
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  readonly stateFile: string | undefined;
  readonly logLevel: LogLevel | undefined;
  readonly format: "text" | "json" | "markdown" | "meltano";
};
