import { readPackageFile, readPackageText } from "../base/package-file.ts";
import { toLatin1 } from "../base/text.ts";
import { loadSpec } from "../config/spec.ts";
import type { LogFormat, LogLevel } from "../protocol/log.ts";
import { aboutJson, aboutMarkdown, aboutText, type Program } from "../protocol/singer-about.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";

/** The Singer flags. */
export type TapOptions = {
  /** Files of settings; a later file wins. `ENV` means variables. */
  readonly configs: readonly string[];
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  readonly stateFile: string | undefined;
  readonly logLevel: LogLevel | undefined;
  readonly logFormat: LogFormat | undefined;
  readonly format: "text" | "json" | "markdown" | "meltano" | "meltano-hub";
};

/** The tap as a plugin for Meltano and for Meltano's Hub. `npm run docs` writes the files. */
export const SHIPPED = {
  meltano: "meltano/tap-contact-intelligence.yml",
  "meltano-hub": "meltano/hub/extractors/tap-contact-intelligence/source-contact-intelligence.yml",
};

const MADE = { text: aboutText, markdown: aboutMarkdown, json: aboutJson };

/** Describes the tap, for people and for programs that list taps. */
export async function about({ format }: TapOptions, { stdout }: Runtime): Promise<number> {
  const text =
    format === "meltano" || format === "meltano-hub"
      ? readPackageText(SHIPPED[format])
      : MADE[format](loadProgram(), loadSpec());
  await write(stdout, toLatin1(`${text.trimEnd()}\n`));
  return 0;
}

export function loadProgram(): Program {
  const { version, description } = readPackageFile("package.json") as Program;
  return { name: "tap-contact-intelligence", version, description };
}
