import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError, ConnectorError } from "../base/errors.ts";
import { toLatin1 } from "../base/text.ts";
import { isLoopback } from "../config/address.ts";
import { type Config, parseConfig } from "../config/config.ts";
import { cannotMake } from "../output/files/reason.ts";
import { replaceFile, statReplaceable } from "../output/files/replace.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { testConfig } from "./check.ts";
import { NoAnswer, openQuestions, type Questions } from "./questions.ts";

/** Asks for address and key, and prints what the key can read. Writes a config file that only its owner can read. */
export async function init({ config: path }: { readonly config: string }, runtime: Runtime): Promise<number> {
  const exists = (await statReplaceable(path)) !== undefined;
  if (!existsSync(dirname(path)))
    throw new ConfigError(`Cannot write "${path}": there is no folder "${dirname(path)}"`);
  const questions = openQuestions(runtime);
  try {
    if (exists && !/^y/i.test(await questions.ask(`"${path}" exists already. Replace it? (y/N) `))) {
      await print(runtime, `"${path}" was not changed\n`);
      return 1;
    }
    const base_url = await answered(questions, runtime, async () => {
      const answer = await questions.ask("Address of the Public API, such as https://contacts.example.com: ");
      if (answer === "") throw new ConfigError("The address is missing");
      return await reachable(withScheme(answer), runtime);
    });
    const { settings, message } = await answered(questions, runtime, async () => {
      const all = { base_url, api_key: await questions.ask("API key (it is not shown): ", true) };
      if (all.api_key === "") throw new ConfigError("The key is missing");
      const found = await testConfig(configOf(all), runtime);
      if (found.status === "FAILED") throw new ConfigError(found.message);
      return { settings: all, message: found.message };
    });
    await replaceFile(path, `${JSON.stringify(settings, null, 2)}\n`, { isSecret: true }).catch((cause) => {
      throw cannotMake(`write the config file "${path}"`, cause);
    });
    await print(runtime, `${message}\nWrote "${path}", which only you can read\n${nextCommand(path)}`);
    return 0;
  } finally {
    questions.close();
  }
}

/** Asks until `ask` succeeds. Without a terminal it asks once. */
async function answered<Answer>(
  { isTerminal }: Questions,
  { stderr, signal }: Runtime,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ConfigError) || signal.aborted || error instanceof NoAnswer) throw error;
      if (!isTerminal) throw new ConfigError(`${error.message}. No file was written`);
      stderr.write(`${error.message}\n`);
    }
  }
}

/** A false key, for a request that only checks an address. */
const NO_KEY = "none";

/** Parses the answers. Messages need no origins of the settings, because the person typed them. @throws ConfigError */
const configOf = async (settings: object): Promise<Config> => ({
  ...parseConfig(settings, {}, { name: "this answer" }),
  origins: new Map(),
});

/** Checks that the service answers at an address, also if it refuses NO_KEY. @throws ConfigError */
async function reachable(address: string, runtime: Runtime): Promise<string> {
  const { message, error } = await testConfig(configOf({ base_url: address, api_key: NO_KEY }), runtime);
  const isRefused = error instanceof ConnectorError && error.code !== undefined;
  if (error !== undefined && !isRefused) throw new ConfigError(message);
  runtime.stderr.write(`The service answers at ${address}\n`);
  return address;
}

/** Adds https:// to an address without a scheme, or http:// to an address of this machine. */
function withScheme(address: string): string {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(address)) return address;
  const http = `http://${address}`;
  return URL.canParse(http) && isLoopback(new URL(http).hostname) ? http : `https://${address}`;
}

function nextCommand(path: string): string {
  const file = /^[\w./-]+$/.test(path) ? path : JSON.stringify(path);
  const config = path === "config.json" ? "" : ` --config ${file}`;
  return `Next, read all people and companies into a folder:\n  source-contact-intelligence read${config} --output contacts\n`;
}

const print = async ({ stdout }: Runtime, text: string): Promise<void> => await write(stdout, toLatin1(text));
