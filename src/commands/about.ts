import { readFileSync } from "node:fs";
import { aboutJson, aboutMarkdown, aboutText, type Program } from "../config/about.ts";
import { meltanoPlugin } from "../config/meltano.ts";
import { loadSpec, type Spec } from "../config/spec.ts";
import { write } from "../protocol/writer.ts";
import type { TapOptions } from "./tap-options.ts";
import type { Process } from "./world.ts";

/** Describes the tap, for people and for programs that list taps. */
export async function about(format: TapOptions["format"], { stdout }: Process): Promise<number> {
  const described = `${WRITTEN[format](loadProgram(), loadSpec()).trimEnd()}\n`;
  await write(stdout, Buffer.from(described, "utf8").toString("latin1"));
  return 0;
}

const WRITTEN: Readonly<Record<TapOptions["format"], (program: Program, spec: Spec) => string>> = {
  text: aboutText,
  markdown: aboutMarkdown,
  meltano: meltanoPlugin,
  json: (program, spec) => JSON.stringify(aboutJson(program, spec), null, 2),
};

function loadProgram(): Program {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version, description } = JSON.parse(manifest);
  return { name: "tap-contact-intelligence", version, description };
}
