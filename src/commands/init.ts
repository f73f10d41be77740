import { chmod } from "node:fs/promises";
import { parseConfig } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { reasonOf } from "../files/reason.ts";
import { replaceFile, statReplaceable } from "../files/replace.ts";
import { toLatin1 } from "../latin1.ts";
import { write } from "../protocol/writer.ts";
import { openQuestions } from "../run/questions.ts";
import type { Runtime } from "../run/runtime.ts";
import { testConfig } from "./check.ts";

export type InitOptions = {
  /** The file to write. */
  readonly config: string;
};

/** Asks for address and key, says what the key can read, and writes a config file that only its owner can read. */
export async function init({ config: path }: InitOptions, runtime: Runtime): Promise<number> {
  const exists = (await statReplaceable(path)) !== undefined;
  const questions = openQuestions(runtime);
  try {
    if (exists && !(await questions.confirm(`"${path}" is there already. Replace it? (y/N) `))) {
      await say(runtime, `"${path}" is as it was\n`);
      return 1;
    }
    const settings = {
      base_url: await questions.ask("Address of the Public API, such as https://contacts.example.com: "),
      api_key: await questions.askSecret("API key (it is not shown): "),
    };
    const config = (async () => parseConfig(settings, {}, "these settings"))();
    const { status, message } = await testConfig(config, runtime);
    if (status === "FAILED") throw new ConfigError(`${message}. No file was written`);
    await save(path, settings);
    await say(runtime, `${message}\nWrote "${path}", which only you can read\n${nextCommands(path)}`);
    return 0;
  } finally {
    questions.close();
  }
}

async function save(path: string, settings: object): Promise<void> {
  try {
    await replaceFile(path, `${JSON.stringify(settings, null, 2)}\n`);
    await chmod(path, 0o600);
  } catch (cause) {
    throw new ConfigError(`Cannot write the config file "${path}": ${reasonOf(cause)}`, { cause });
  }
}

function nextCommands(path: string): string {
  const file = /^[\w./-]+$/.test(path) ? path : JSON.stringify(path);
  const program = "  source-contact-intelligence";
  return [
    "Next:",
    `${program} check --config ${file}`,
    `${program} discover --config ${file} > catalog.json`,
    `${program} read --config ${file} --output contacts`,
    "",
  ].join("\n");
}

const say = async ({ stdout }: Runtime, text: string): Promise<void> => await write(stdout, toLatin1(text));
