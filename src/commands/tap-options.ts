import type { LogFormat, LogLevel } from "../protocol/log.ts";

/** The Singer flags. */
export type TapOptions = {
  /** Merged in order; `ENV` is the environment. */
  readonly configs: readonly string[];
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  readonly stateFile: string | undefined;
  readonly logLevel: LogLevel | undefined;
  readonly logFormat: LogFormat | undefined;
  readonly format: "text" | "json" | "markdown" | "meltano" | "meltano-hub";
};
