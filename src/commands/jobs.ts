import { printable } from "../base/json.ts";
import { plural, shown, table, toLatin1 } from "../base/text.ts";
import { secretsOf } from "../config/config.ts";
import { openConfig } from "../config/config-files.ts";
import { describeJobs, type Forecast, forecastsOf, invalidText } from "../jobs/report.ts";
import { onlyRead } from "../output/sink.ts";
import { readState } from "../output/state-file.ts";
import { secretMask } from "../protocol/mask.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { statesByName } from "../state/envelopes.ts";

export type JobsOptions = {
  readonly config: string | undefined;
  /** The file of a state. `stateFile`: the state file of the runs, which may be missing. */
  readonly state: string | undefined;
  readonly stateFile: string | undefined;
  readonly json: boolean;
};

/** Prints what the next run would submit, and the step of every configured item. Sends no request. */
export async function jobs(options: JobsOptions, runtime: Runtime): Promise<number> {
  const config = await openConfig(options.config, runtime.environment);
  const mask = secretMask(secretsOf(config));
  const { state: path } = onlyRead(options);
  const states = path === undefined ? new Map() : (await readState(path)).streams;
  const forecasts = await forecastsOf(config, runtime.environment, statesByName(states));
  const about = await describeJobs(config, runtime.environment);
  const text = options.json
    ? JSON.stringify(forecasts)
    : [about.join("\n") || "The config has no jobs", ...forecasts.map(forecastText)].join("\n\n");
  await write(runtime.stdout, toLatin1(`${mask(text)}\n`));
  for (const warning of config.warnings) runtime.stderr.write(mask(`Warning: ${warning}\n`));
  return 0;
}

/** The next run's submissions of a setting, and their cost. */
export function wouldSubmit(forecast: Forecast): string {
  const { setting, may_cost } = forecast;
  const cost = may_cost === null || may_cost === 0 ? "" : `. It may use up to ${plural(may_cost, "credit")}`;
  return `${setting}: the next run would submit ${toSubmit(forecast)}${cost}`;
}

function forecastText(forecast: Forecast): string {
  const { items, open, unknown, invalid, suppressed, today, this_month } = forecast;
  const rows = items.map(({ item, step, job_id, submitted, due, credits, code }) =>
    [item, step, job_id, submitted, due, credits, code].map((cell) => printable(String(cell ?? ""))),
  );
  return [
    wouldSubmit(forecast),
    `${plural(open, "open job")}, ${plural(unknown, "unknown submission")}. Today: ${spent(today)}; this month: ${spent(this_month)}`,
    ...forecast.spent.map(([day, submitted, credits]) => `  ${day}: ${spent({ submitted, credits })}`),
    ...(invalid.count === 0 ? [] : [invalidText(invalid)]),
    ...(suppressed === 0 ? [] : [`Suppressed, and never sent: ${plural(suppressed, "item")}`]),
    ...(rows.length === 0 ? [] : table([HEAD, ...rows])),
  ].join("\n");
}

function toSubmit({ would_submit, waiting, unknown_inputs, price }: Forecast): string {
  const rows = `what the rows of ${unknown_inputs.join(" and ")} name`;
  if (waiting === 0) return unknown_inputs.length === 0 ? "nothing" : `only ${rows}`;
  const most = price === null && would_submit > 1 ? "at most " : "";
  const items = `${most}${shown(would_submit)} of ${plural(waiting, "waiting item")}`;
  return unknown_inputs.length === 0 ? items : `${items}, and ${rows}`;
}

const HEAD = ["item", "step", "job", "submitted", "due", "credits", "code"];

const spent = ({ submitted, credits }: Pick<Forecast["today"], "submitted" | "credits">): string =>
  `${shown(submitted)} submitted${credits > 0 ? `, ${plural(credits, "credit")}` : ""}`;
