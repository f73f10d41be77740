import type { ChildProcess } from "node:child_process";
import type { Sandbox } from "../../../sandbox/server.ts";
import type { Config } from "../../../src/config/config.ts";
import type { StreamState } from "../../../src/sync/event.ts";
import type { AirbyteMessage } from "../../support/airbyte-messages.ts";
import { CONNECTOR, type Ended, file, run } from "../../support/cli.ts";
import { catalogFor, configFor } from "../../support/configs.ts";
import { type Checkpoint, type Delivered, type Outcome, toDelivered } from "./read-once.ts";

/** What befalls the built program. */
export type Strike = {
  /** After how many bytes of its output. */
  readonly afterBytes?: number;
  /** Default: SIGKILL. */
  readonly act?: (child: ChildProcess) => void;
  /** Kills it after so many ms at the latest. */
  readonly mostMs?: number;
};

type CommandSettings = {
  readonly sandbox: Sandbox;
  readonly config: Pick<Config, "maxWindowRows" | "numWorkers" | "lookbackWindowDays" | "isUser">;
  readonly state: StreamState | null;
  /** The ids under which all is read anew; incrementally if absent. */
  readonly fullRefresh?: { readonly generation_id: number; readonly sync_id: number };
  readonly idleSeconds?: number;
};

export type CommandOutcome = Outcome & Ended;

/** Runs the command as platforms do and reads what it writes; as the built program, in its own process, if it is struck. */
export async function readCommand(settings: CommandSettings, strike?: Strike): Promise<CommandOutcome> {
  const { sandbox, config, state, fullRefresh, idleSeconds = 5 } = settings;
  const settingsFile = await configFor(sandbox, {
    max_window_rows: Math.max(1000, config.maxWindowRows),
    num_workers: config.numWorkers,
    lookback_window_days: config.lookbackWindowDays,
    is_user: config.isUser,
    idle_timeout_seconds: idleSeconds,
  });
  const catalog = await catalogFor({
    people: fullRefresh ? { ...fullRefresh, sync_mode: "full_refresh" } : {},
  });
  const words = ["read", "--config", settingsFile, "--catalog", catalog];
  const saved = { stream_descriptor: { name: "people" }, stream_state: state };
  if (state !== null) words.push("--state", await file("state.json", [{ type: "STREAM", stream: saved }]));
  let late: NodeJS.Timeout | undefined;
  const started = (child: ChildProcess): void => {
    const { afterBytes = Number.POSITIVE_INFINITY, mostMs = 120_000 } = strike ?? {};
    const { act = () => child.kill("SIGKILL") } = strike ?? {};
    late = setTimeout(() => child.kill("SIGKILL"), mostMs);
    let bytes = 0;
    child.stdout?.on("data", ({ length }: string) => {
      if (bytes < afterBytes && bytes + length >= afterBytes) act(child);
      bytes += length;
    });
  };
  const ended = await run(CONNECTOR, words, strike && { started });
  clearTimeout(late);
  return { ...readOutput(ended.stdout), ...ended, complete: ended.code === 0 };
}

/** What whole lines say; the rest of a line that was cut off says nothing. */
function readOutput(stdout: string): Pick<Outcome, "records" | "checkpoints" | "error"> {
  const records: Delivered[] = [];
  const checkpoints: Checkpoint[] = [];
  let error: unknown;
  for (const line of stdout.split("\n").slice(0, -1)) {
    const { record, state, trace } = JSON.parse(line) as AirbyteMessage;
    if (record !== undefined) records.push(toDelivered(JSON.stringify(record.data)));
    const saved = state?.stream.stream_state as StreamState | undefined;
    if (saved !== undefined) checkpoints.push({ state: saved, after: records.length });
    error ??= trace?.error?.message;
  }
  return { records, checkpoints, error };
}
