#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseCommand, UsageError } from "./command-line.ts";
import { demo } from "./demo.ts";
import { serve } from "./serve.ts";

/** Below dist/, where this file runs: two folders up is the package. */
const PACKAGE = new URL("../../package.json", import.meta.url);

class Interrupted extends Error {}

async function run(args: readonly string[], signal: AbortSignal): Promise<number> {
  const command = parseCommand(args);
  const { stdout, env: environment, execPath: node } = process;
  switch (command.kind) {
    case "help":
      stdout.write(`${command.text}\n`);
      return 0;
    case "version":
      stdout.write(`${JSON.parse(readFileSync(PACKAGE, "utf8")).version}\n`);
      return 0;
    case "serve":
      return await serve(command, stdout, signal);
    case "demo":
      return await demo({ stdout, environment, signal, node });
  }
}

/** Runs the command. A signal ends it as it would end any program, after the sandbox has closed. */
async function main(): Promise<void> {
  const abort = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, () => abort.abort(new Interrupted(signal)));
  // The reader of a pipe may stop early (head).
  process.stdout.on("error", () => abort.abort(new Interrupted("SIGTERM")));
  try {
    process.exitCode = await run(process.argv.slice(2), abort.signal);
  } catch (error) {
    const { reason } = abort.signal;
    if (reason instanceof Interrupted) {
      for (const signal of signals) process.removeAllListeners(signal);
      process.kill(process.pid, reason.message);
      return;
    }
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}

void main();
