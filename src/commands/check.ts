import type { ConfigError } from "../base/errors.ts";
import { plural, shown, toLatin1 } from "../base/text.ts";
import type { Config } from "../config/config.ts";
import { openConfig, readConfigs } from "../config/config-files.ts";
import { describeJobs } from "../jobs/report.ts";
import { runToEnd } from "../output/output.ts";
import { type ConnectionStatus, logMessage, statusMessage } from "../protocol/airbyte-message.ts";
import { userMessage } from "../protocol/error-text.ts";
import { noticeTexts } from "../protocol/language.ts";
import { logLevelOf } from "../protocol/log.ts";
import { Mask } from "../protocol/mask.ts";
import { write } from "../protocol/writer.ts";
import type { Reporter, Run } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { info } from "../sync/event.ts";
import type { TapOptions } from "./about.ts";
import { withGuests } from "./guests.ts";
import { isNotOnPlan, isOfUse, leftOutText, probeStreams, QUICK } from "./probe.ts";

export type CheckOptions = {
  readonly config: string | undefined;
  /** Whether a failed check exits with 1 also without a terminal. Platforms need no exit code, because they read the message. */
  readonly exitCode: boolean;
};

/** Tests the config and prints what the key can read: Airbyte messages, or sentences at a terminal. */
export async function check({ config: file, exitCode }: CheckOptions, runtime: Runtime): Promise<number> {
  const { stdout, environment } = runtime;
  const format = stdout.isTTY === true ? SENTENCES : MESSAGES;
  // A platform may remove the folder of the config after the check.
  const config = openConfig(file, environment, stdout.isTTY !== true && !exitCode);
  const { error: _, ...status } = await testConfig(config, runtime, (text) =>
    write(stdout, format.warning(text)),
  );
  await write(stdout, format.status(status));
  return status.status === "FAILED" && (exitCode || stdout.isTTY === true) ? 1 : 0;
}

/** Tests a config. Returns what its key can read, or the error. Shows waits at a terminal. */
export async function testConfig(
  config: Promise<Config>,
  runtime: Runtime,
  warn: (text: string) => Promise<void> = async () => {},
): Promise<Required<ConnectionStatus> & { readonly error?: unknown }> {
  const noticeText = noticeTexts(runtime.clock.now);
  const reporter: Reporter = {
    mask: new Mask(),
    emit: async (event) => {
      if (event.kind === "log" && event.level === "warn") await warn(reporter.mask.apply(event.text));
      if (runtime.stderr.isTTY !== true || (event.kind !== "retrying" && event.kind !== "limited")) return;
      const text = noticeText(event);
      if (text !== "") runtime.stderr.write(reporter.mask.apply(`${text}\n`));
    },
  };
  try {
    const options = { config: await config, runtime, reporter, pace: QUICK };
    const message = await withGuests(options, (run) => whatCanBeRead(run, runtime));
    return { status: "SUCCEEDED", message: reporter.mask.apply(message) };
  } catch (error) {
    runtime.signal.throwIfAborted();
    return { status: "FAILED", message: reporter.mask.apply(userMessage(error)), error };
  }
}

const MESSAGES = { warning: (text: string) => logMessage("WARN", text), status: statusMessage };

const SENTENCES = {
  warning: (text: string) => toLatin1(`Warning: ${text}\n`),
  status: ({ status, message }: ConnectionStatus) =>
    toLatin1(`${status === "SUCCEEDED" ? "The check succeeded" : "The check failed"}. ${message}\n`),
};

/** Requests one row of each list and export, and buys nothing. Lists readable streams. @throws an error that would stop a run */
async function whatCanBeRead(run: Run, { environment }: Runtime): Promise<string> {
  const { config } = run.session;
  const { suppressFile, suppressed } = config;
  const readable: string[] = [];
  const warnings: string[] = [];
  const refused: { readonly name: string; readonly error: ConfigError }[] = [];
  let works = false;
  for await (const { reader, rows, warning, error } of probeStreams(run, true)) {
    const { spec } = reader;
    if (error === undefined) {
      works ||= isOfUse(spec);
      readable.push(typeof rows === "number" ? `${spec.name} (${shown(rows)})` : spec.name);
      if (warning !== undefined) warnings.push(warning);
    } else if (isNotOnPlan(error)) refused.push({ name: spec.name, error });
    else throw error;
  }
  const [first] = refused;
  if (first !== undefined && !works) throw first.error;
  const suppression = `suppress_file suppresses ${plural(suppressed.entries, "entry", "entries")}`;
  const sentences = [
    `This key can read ${readable.join(", ")}`,
    ...refused.map(({ name }) => leftOutText(name)),
    ...warnings,
    ...(await describeJobs(config, environment)),
    ...(suppressFile === null ? [] : [suppression]),
  ];
  return sentences.join(". ");
}

/** Tests the config as `check`, and writes the result to stderr. */
export async function tapTest(options: TapOptions, runtime: Runtime): Promise<number> {
  const { configs, logLevel, logFormat } = options;
  // The log is the answer, also at a terminal.
  const level = logLevel ?? logLevelOf(runtime.environment);
  return await runToEnd({ audience: "singer", logLevel: level, logFormat }, runtime, async (open) => {
    const reporter = await open({});
    const config = (await readConfigs(configs, runtime.environment))();
    const text = await withGuests({ config, runtime, reporter, pace: QUICK, logLevel }, (run) =>
      whatCanBeRead(run, runtime),
    );
    await reporter.emit(info(text));
    return true;
  });
}
