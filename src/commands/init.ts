import { chmod } from "node:fs/promises";
import { parseConfig } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { reasonOf } from "../files/reason.ts";
import { replaceFile, statReplaceable } from "../files/replace.ts";
import { toLatin1 } from "../latin1.ts";
import { userMessage } from "../protocol/error-text.ts";
import { write } from "../protocol/writer.ts";
import { openQuestions, type Questions } from "../run/questions.ts";
import type { Reporter } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { sayWaiting, testConfig } from "./check.ts";

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
    const settings = await ask(questions);
    const found = await test(settings, runtime);
    await save(path, settings);
    await say(runtime, `${found}\nWrote "${path}", which only you can read\n${nextCommands(path)}`);
    return 0;
  } finally {
    questions.close();
  }
}

type Settings = { readonly base_url: string; readonly api_key: string };

async function ask(questions: Questions): Promise<Settings> {
  const base_url = await questions.ask("Address of the Public API, such as https://contacts.example.com: ");
  return { base_url, api_key: await questions.askSecret("API key (it is not shown): ") };
}

/** Returns what the key can read. Throws ConfigError for a key or an address that does not work. */
async function test(settings: Settings, runtime: Runtime): Promise<string> {
  const reporter: Reporter = {
    mask: (text) => text,
    emit: async (event) => sayWaiting(event, runtime, reporter),
  };
  try {
    const config = parseConfig(settings, {}, "these settings");
    return reporter.mask(await testConfig(config, runtime, reporter));
  } catch (error) {
    runtime.signal.throwIfAborted();
    throw new ConfigError(`${reporter.mask(userMessage(error))}. No file was written`, { cause: error });
  }
}

async function save(path: string, settings: Settings): Promise<void> {
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
