import { withoutTotal } from "../api/stream-api.ts";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { describeCaps } from "../jobs/report.ts";
import { toLatin1 } from "../latin1.ts";
import { type ConnectionStatus, logMessage, statusMessage } from "../protocol/airbyte-message.ts";
import { userMessage } from "../protocol/error-text.ts";
import { write } from "../protocol/writer.ts";
import { openConfig } from "../run/config-files.ts";
import { waitingText } from "../run/progress.ts";
import { type Reporter, type Run, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { cannotBeCounted } from "../run/session.ts";
import type { Event } from "../streams/event.ts";

/** Somebody waits for the answer, so that a service that does not answer is given up soon. */
const TRIES = 2;

export type CheckOptions = {
  readonly config: string | undefined;
  /** Whether a check that fails exits with 1; platforms look at its message alone. */
  readonly exitCode?: boolean;
};

/** Says whether the config works and what its key can read: in messages, or in sentences to a person at a terminal. */
export async function check({ config: file, exitCode }: CheckOptions, runtime: Runtime): Promise<number> {
  const says = runtime.stdout.isTTY === true ? SENTENCES : MESSAGES;
  const reporter: Reporter = {
    mask: (text) => text,
    emit: async (event) => {
      if (event.kind === "log") await write(runtime.stdout, reporter.mask(says.warning(event.text)));
      sayWaiting(event, runtime, reporter);
    },
  };
  let status: ConnectionStatus;
  try {
    const message = await testConfig(await openConfig(file, runtime.environment), runtime, reporter);
    status = { status: "SUCCEEDED", message };
  } catch (error) {
    runtime.signal.throwIfAborted();
    status = { status: "FAILED", message: userMessage(error) };
  }
  await write(runtime.stdout, reporter.mask(says.status(status)));
  return status.status === "FAILED" && exitCode === true ? 1 : 0;
}

/** Returns in words what a config's key can read. Throws what keeps it from reading anything. */
export async function testConfig(config: Config, runtime: Runtime, reporter: Reporter): Promise<string> {
  return await withRun({ config, runtime, reporter, tries: TRIES }, whatCanBeRead);
}

/** Tells a person at a terminal what the program waits for. */
export function sayWaiting(event: Event, { stderr }: Runtime, { mask }: Pick<Reporter, "mask">): void {
  if (stderr.isTTY !== true || (event.kind !== "retrying" && event.kind !== "limited")) return;
  stderr.write(mask(`${capital(waitingText(event))}\n`));
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

type Says = {
  readonly warning: (text: string) => string;
  readonly status: (status: ConnectionStatus) => string;
};

const MESSAGES: Says = { warning: (text) => logMessage("WARN", text), status: statusMessage };

const SENTENCES: Says = {
  warning: (text) => toLatin1(`Warning: ${text}\n`),
  status: ({ status, message }) =>
    toLatin1(`${status === "SUCCEEDED" ? "The check succeeded" : "The check failed"}. ${message}\n`),
};

/** A key works if it can read what the connector is for, or any of the jobs that are configured. Submits nothing. */
async function whatCanBeRead({ session }: Run): Promise<string> {
  const { config } = session;
  const readable: string[] = [];
  const uncounted: string[] = [];
  const refused: { name: string; error: ConfigError }[] = [];
  let works = false;
  for (const [index, spec] of session.streams.entries()) {
    try {
      const rows = await session.probe(spec);
      works ||= index === 0 || spec.reading === "job";
      readable.push(typeof rows === "number" ? `${spec.name} (${rows})` : spec.name);
      if (spec.reading === "job" || spec.exportPath === null) continue;
      if (rows === undefined) uncounted.push(cannotBeCounted(spec));
      if (rows === null && config.verifyCounts) uncounted.push(withoutTotal(spec.name));
    } catch (error) {
      if (!(error instanceof ConfigError) || error.code === "INVALID_API_KEY") throw error;
      refused.push({ name: spec.name, error });
    }
  }
  const [first] = refused;
  if (first !== undefined && !works) throw first.error;
  const reasons = refused.map(({ name, error }) => `${name}: ${error.message}`);
  const caps = describeCaps(config);
  const costs = caps === undefined ? [] : [caps];
  return [`This key can read ${readable.join(", ")}`, ...reasons, ...uncounted, ...costs].join(". ");
}
