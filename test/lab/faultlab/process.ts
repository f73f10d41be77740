import type { ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Sandbox } from "../../../sandbox/server.ts";
import type { Config } from "../../../src/config/config.ts";
import type { StreamState } from "../../../src/streams/event.ts";
import { CONNECTOR, run } from "../../support/cli.ts";
import { type Checkpoint, type Delivered, type Outcome, toDelivered } from "./read-once.ts";

export type ProcessSettings = {
  readonly sandbox: Sandbox;
  readonly config: Pick<Config, "maxWindowRows" | "numWorkers" | "lookbackWindowDays" | "isUser">;
  readonly state: StreamState | null;
  /** The ids under which all is read anew; incrementally if absent. */
  readonly fullRefresh?: { readonly generation_id: number; readonly sync_id: number };
  /** Where the files of the run are put. */
  readonly directory: string;
  readonly killAfterLines?: number | undefined;
  readonly killAfterBytes?: number | undefined;
  readonly signal?: NodeJS.Signals;
  /** Closes its output instead of killing it. */
  readonly closeInstead?: boolean;
  readonly idleSeconds?: number;
  /** Kills it after so many ms at the latest. */
  readonly mostMs?: number;
};

export type ProcessOutcome = Outcome & {
  readonly code: number | null;
  readonly endedBy: NodeJS.Signals | null;
  readonly stderr: string;
  readonly stdout: string;
};

/** Runs the command within this process, to its end. */
export async function readInProcess(settings: ProcessSettings): Promise<ProcessOutcome> {
  const ended = await run(CONNECTOR, ["read", ...argumentsOf(settings)]);
  return { ...readOutput(ended.stdout), ...ended, complete: ended.code === 0, killed: false, endedBy: null };
}

/** Runs the built program as platforms do, reads what it writes, and kills it where it is told to. */
export async function readProcess(settings: ProcessSettings): Promise<ProcessOutcome> {
  let seen = "";
  let struck = false;
  let late: NodeJS.Timeout | undefined;
  const started = (child: ChildProcess): void => {
    const strike = (act: () => void): void => {
      struck = true;
      act();
    };
    late = setTimeout(() => strike(() => child.kill("SIGKILL")), settings.mostMs ?? 120_000);
    child.stdout?.on("data", (chunk: Buffer | string) => {
      seen += String(chunk);
      if (struck || !isDue(settings, seen)) return;
      strike(() =>
        settings.closeInstead === true ? child.stdout?.destroy() : child.kill(settings.signal ?? "SIGKILL"),
      );
    });
  };
  const { signal, ...ended } = await run(CONNECTOR, ["read", ...argumentsOf(settings)], { started });
  clearTimeout(late);
  return {
    ...readOutput(ended.stdout),
    complete: ended.code === 0,
    killed: struck,
    ...ended,
    endedBy: signal,
  };
}

function isDue({ killAfterLines, killAfterBytes }: ProcessSettings, text: string): boolean {
  if (killAfterBytes !== undefined && text.length >= killAfterBytes) return true;
  return killAfterLines !== undefined && text.split("\n").length > killAfterLines;
}

function argumentsOf(settings: ProcessSettings): string[] {
  const { sandbox, config, state, directory, fullRefresh: ids } = settings;
  const files = { config: join(directory, "config.json"), state: join(directory, "state.json") };
  const catalog = join(directory, "catalog.json");
  const { maxWindowRows, numWorkers, lookbackWindowDays, isUser } = config;
  writeFileSync(
    files.config,
    JSON.stringify({
      base_url: sandbox.url,
      api_key: sandbox.key,
      requests_per_minute: 6000,
      max_window_rows: Math.max(1000, maxWindowRows),
      num_workers: numWorkers,
      lookback_window_days: lookbackWindowDays,
      is_user: isUser,
      idle_timeout_seconds: settings.idleSeconds ?? 5,
    }),
  );
  writeFileSync(
    catalog,
    JSON.stringify({ streams: [{ ...CONFIGURED, ...(ids && { ...ids, sync_mode: "full_refresh" }) }] }),
  );
  const args = ["--config", files.config, "--catalog", catalog];
  if (state === null) return args;
  writeFileSync(files.state, JSON.stringify([envelope(state)]));
  return [...args, "--state", files.state];
}

const CONFIGURED = {
  stream: { name: "people", json_schema: {}, supported_sync_modes: ["full_refresh", "incremental"] },
  sync_mode: "incremental",
  destination_sync_mode: "append_dedup",
  cursor_field: ["discoveredAt"],
  primary_key: [["id"]],
};

const envelope = (state: StreamState): unknown => ({
  type: "STREAM",
  stream: { stream_descriptor: { name: "people" }, stream_state: state },
});

type Message = {
  readonly type: string;
  readonly record?: { readonly data: Delivered };
  readonly state?: { readonly stream: { readonly stream_state: StreamState } };
  readonly trace?: { readonly error?: { readonly message: string } };
};

/** What whole lines say; the rest of a line that was cut off says nothing. */
function readOutput(stdout: string): Pick<Outcome, "records" | "checkpoints" | "error"> {
  const lines = stdout.split("\n").slice(0, -1);
  const records: Delivered[] = [];
  const checkpoints: Checkpoint[] = [];
  let error: unknown;
  for (const line of lines) {
    const message = JSON.parse(line) as Message;
    if (message.record !== undefined) records.push(toDelivered(JSON.stringify(message.record.data)));
    if (message.state !== undefined) {
      checkpoints.push({ state: message.state.stream.stream_state, after: records.length });
    }
    error ??= message.trace?.error?.message;
  }
  return { records, checkpoints, error };
}
