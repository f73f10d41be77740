import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
type RunOptions = {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Default: ten minutes. */
  readonly killAfterMs?: number;
};

export type Ended = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** What a process writes until it has ended. */
export async function endOf(child: ChildProcess, encoding: BufferEncoding = "utf8"): Promise<Ended> {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding(encoding).on("data", (text: string) => {
      output[name] += text;
    });
  }
  return await new Promise((resolve, reject) => {
    child.on("error", reject).on("close", (code, signal) => resolve({ code, signal, ...output }));
  });
}

/** Runs any program to its end, without the settings that this machine has for the connector. */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { cwd = ROOT, env, stdin = "", killAfterMs = 600_000 } = options;
  const child = spawn(file, args, { cwd, env: { ...bareEnvironment(), ...env } });
  const timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  child.stdin.on("error", () => undefined).end(stdin);
  return await endOf(child).finally(() => clearTimeout(timer));
}

function bareEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("CONTACT_INTELLIGENCE_"));
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""]));
}

/** Runs a program that must succeed. */
export async function succeed(file: string, args: readonly string[], options?: RunOptions): Promise<Ended> {
  const ended = await run(file, args, options);
  const { code, signal, stdout, stderr } = ended;
  if (code !== 0)
    throw new Error(`${file} ${args.join(" ")} ended with ${code ?? signal}:\n${stderr}${stdout}`);
  return ended;
}

/** What a program that must succeed wrote to stdout. */
export const outputOf = async (...words: Parameters<typeof succeed>): Promise<string> =>
  (await succeed(...words)).stdout;
