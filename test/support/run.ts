import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Ended } from "./cli.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
type RunOptions = {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
};

/** Runs any program to its end, without the settings that this machine has for the connector. */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = spawn(file, args, {
    cwd: options.cwd ?? ROOT,
    env: { ...bareEnvironment(), ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  child.stdin.on("error", () => undefined).end(options.stdin ?? "");
  return await new Promise((resolve, reject) => {
    child.on("error", reject).on("close", (code, signal) => resolve({ code, signal, ...output }));
  });
}

function bareEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("CONTACT_INTELLIGENCE_"));
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""]));
}

/** Runs a program that must succeed, and returns what it wrote to stdout. */
export async function outputOf(
  file: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { code, signal, stdout, stderr } = await run(file, args, options);
  if (code !== 0)
    throw new Error(`${file} ${args.join(" ")} ended with ${code ?? signal}:\n${stderr}${stdout}`);
  return stdout;
}
