import type { LogLevel } from "../protocol/log.ts";

/** The Singer flags. `mode`: the one that counts, when several are given. */
export type TapOptions = {
  readonly mode: "discover" | "about" | "test" | "sync";
  /** Merged in order; `ENV` is the environment. */
  readonly configs: readonly string[];
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  readonly stateFile: string | undefined;
  readonly logLevel: LogLevel | undefined;
  readonly format: "text" | "json" | "markdown" | "meltano" | "meltano-hub";
};
