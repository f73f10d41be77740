import { loadSpec, type Spec } from "../config/spec.ts";
import { toLatin1 } from "../latin1.ts";
import { readPackageFile } from "../package-file.ts";
import { meltanoHubPlugin, meltanoPlugin } from "../protocol/meltano-plugin.ts";
import { aboutJson, aboutMarkdown, aboutText, type Program } from "../protocol/singer-about.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import type { TapOptions } from "./tap-options.ts";

/** Describes the tap, for people and for programs that list taps. */
export async function about(format: TapOptions["format"], { stdout }: Runtime): Promise<number> {
  const described = `${WRITTEN[format](loadProgram(), loadSpec()).trimEnd()}\n`;
  await write(stdout, toLatin1(described));
  return 0;
}

const WRITTEN: Readonly<Record<TapOptions["format"], (program: Program, spec: Spec) => string>> = {
  text: aboutText,
  markdown: aboutMarkdown,
  meltano: meltanoPlugin,
  "meltano-hub": meltanoHubPlugin,
  json: (program, spec) => JSON.stringify(aboutJson(program, spec), null, 2),
};

function loadProgram(): Program {
  const { version, description } = readPackageFile("package.json") as Pick<
    Program,
    "version" | "description"
  >;
  return { name: "tap-contact-intelligence", version, description };
}
