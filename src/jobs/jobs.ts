import { systemClock } from "../base/clock.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import { type JobSetting, type JobStreamSpec, jobSpecsOf } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { RowCheck } from "../service/rows.ts";
import type { Event } from "../sync/event.ts";
import { type JobServices, newRun } from "./job-run.ts";
import { Memory } from "./memory.ts";
import { readJobs } from "./run.ts";

export type { JobServices } from "./job-run.ts";
export { probeJobs } from "./kinds.ts";

/** The job streams of one run. The run has the locks. */
export type Jobs = {
  /** Reads a selected stream. @throws ConfigError for an unusable state */
  read(spec: JobStreamSpec, check: RowCheck): AsyncGenerator<Event>;
  close(): Promise<void>;
};

/** A selected stream. */
export type SelectedJobs = Pick<ConfiguredStream, "name" | "syncMode"> &
  Partial<Pick<ConfiguredStream, "generationId" | "minimumGenerationId" | "syncId">>;

/** Takes the locks, and reads states and receipts, without requests. @throws TransientError while another run has the receipts */
export async function openJobs(
  config: Config,
  selected: readonly SelectedJobs[],
  states: ReadonlyMap<string, unknown>,
  services: JobServices,
): Promise<Jobs> {
  const orders = jobSpecsOf(config).map((spec) => ({
    ...spec,
    ...orderOf(selected.find(({ name }) => name === spec.name)),
  }));
  const settings = new Set(orders.flatMap(({ isSelected, setting }) => (isSelected ? [setting] : [])));
  const streams = orders.filter(({ setting }) => settings.has(setting));
  const syncId = orders.find((order) => order.syncId !== null)?.syncId ?? null;
  const { environment, signal, pid, processes, notify } = services;
  // Locks use the clock of the machine, even if `services` contain another clock.
  const lock = { clock: systemClock, signal, pid, processes, notify };
  const memory = await Memory.open({ config, environment, states, streams, lock, syncId });
  /** The settings of streams that submit in this run. */
  const started = new Set<JobSetting>();

  return {
    read: (spec, check) => {
      const { setting, name } = spec;
      const order = orders.find((one) => one.isSelected && one.name === name);
      if (order === undefined) throw new Error(`Cannot open the stream "${name}": it was not selected`);
      const { isRefresh } = order;
      const isSecond = started.has(setting) && !isRefresh;
      if (!isRefresh) started.add(setting);
      return readJobs(newRun({ spec, check, isRefresh, isSecond, config, memory, services }));
    },
    close: () => memory.close(),
  };
}

/** The platform's order for a stream. PyAirbyte's ids are always 1, so the program ignores them. */
function orderOf(selected: Partial<SelectedJobs> | undefined) {
  const { syncMode, generationId = null, minimumGenerationId = 0, syncId = null } = selected ?? {};
  const isNumbered = [generationId, minimumGenerationId, syncId].some((id) => id !== 1);
  return {
    isSelected: selected !== undefined,
    isRefresh: syncMode === "full_refresh" || (isNumbered && minimumGenerationId > 0),
    generation: isNumbered ? generationId : null,
    syncId: isNumbered && syncId !== null ? String(syncId) : null,
  };
}
