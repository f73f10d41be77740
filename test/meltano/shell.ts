import { spawn } from "node:child_process";
import { type Ended, endOf } from "../support/run.ts";

export type Ran = Ended;

export type ShellOptions = {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly killAfterMs?: number;
};

/** Runs a program to its end, without a shell, and without what this machine's environment says of proxies or logs. */
export async function run(
  command: string,
  args: readonly string[],
  options: ShellOptions = {},
): Promise<Ran> {
  const { cwd, env = {}, input = "", killAfterMs = 120_000 } = options;
  const child = spawn(command, [...args], { cwd, env: { ...process.env, NO_COLOR: "1", ...env } });
  const timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  child.stdin.on("error", () => undefined).end(input);
  return await endOf(child).finally(() => clearTimeout(timer));
}

/** Runs a program that must succeed. */
export async function succeed(
  command: string,
  args: readonly string[],
  options: ShellOptions = {},
): Promise<Ran> {
  const ran = await run(command, args, options);
  if (ran.code !== 0) {
    throw new Error(`${command} ${args.join(" ")} exited with ${ran.code}:\n${ran.stderr}\n${ran.stdout}`);
  }
  return ran;
}
