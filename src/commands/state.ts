import { STREAMS } from "../catalog/streams.ts";
import { readText } from "../files/read.ts";
import { parseJobState } from "../jobs/state.ts";
import { isObject, printable } from "../json.ts";
import { toLatin1 } from "../latin1.ts";
import { plural } from "../plural.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { type DatedState, parseDatedState } from "../state/dated.ts";
import { parseStateText } from "../state/envelopes.ts";

export type StateOptions = {
  /** A state in any envelope; `-` is stdin. */
  readonly file: string;
};

/** Says for a person how far each stream of a state has come, whoever wrote it. Throws ConfigError for what is no state. */
export async function showState({ file }: StateOptions, runtime: Runtime): Promise<number> {
  const { streams } = parseStateText(await readText("state", file));
  const paragraphs = [...streams].map(([stream, state]) => paragraph(stream, describe(stream, state)));
  const text =
    paragraphs.length === 0 ? "The state is empty: the next run reads everything.\n" : paragraphs.join("\n");
  await write(runtime.stdout, toLatin1(text));
  return 0;
}

const paragraph = (stream: string, facts: readonly string[]): string =>
  `${printable(stream)}\n${facts.map((fact) => `  ${printable(fact)}\n`).join("")}`;

function describe(stream: string, state: unknown): readonly string[] {
  const spec = STREAMS.find(({ name }) => name === stream);
  if (spec === undefined) return ["this program has no such stream"];
  if (spec.reading === "job") return describeJobs(stream, state, spec.cursorField);
  const isDated = isObject(state) && ("discoveredAt" in state || "replication_key_value" in state);
  if (!isDated) return ["is read from the start in every run"];
  const dated = parseDatedState(stream, state);
  return dated === null ? ["nothing is read yet"] : describeDated(dated);
}

function describeDated(state: DatedState): readonly string[] {
  const { discoveredAt, from, gap, missing_days, recheck, undated, filters, full_refresh, shard } = state;
  return [
    discoveredAt === null
      ? "nothing is read yet"
      : `read from ${from ?? "the beginning"} up to ${discoveredAt}`,
    ...(gap === null
      ? []
      : [`being read before that: from ${gap.from ?? "the beginning"}, done up to ${gap.to}`]),
    missing_days.length === 0 ? "no missing days" : `missing days: ${missing_days.join(", ")}`,
    ...(recheck.length === 0
      ? []
      : [`to be checked again: ${recheck.map(([first, last]) => `${first} to ${last}`).join(", ")}`]),
    `rows without a date: ${undated === "done" ? "read" : "not read yet"}`,
    ...(filters === null
      ? []
      : [`filters: source ${filters.source_slug ?? "any"}, is_user ${filters.is_user}`]),
    ...(full_refresh === null ? [] : [`full refresh: ${full_refresh.done ? "complete" : "not complete"}`]),
    ...(shard === null
      ? []
      : [`shard ${shard.index} of the plan ${shard.plan}: ${shard.done ? "done" : "not done"}`]),
  ];
}

function describeJobs(stream: string, state: unknown, cursorField: string): readonly string[] {
  const { knowledge, cursor } = parseJobState(stream, state, cursorField);
  if (knowledge === null) return ["nothing is submitted yet"];
  const steps = new Map<string, number>();
  for (const { step } of knowledge.ledgers.flatMap(({ jobs }) => [...jobs.values()])) {
    steps.set(step, (steps.get(step) ?? 0) + 1);
  }
  const finished = knowledge.ledgers.reduce((sum, ledger) => sum + ledger.finished.size, 0);
  const byStep = [...steps].map(([step, count]) => `${count} ${step}`);
  return [
    cursor === null ? "nothing is delivered yet" : `delivered up to ${cursor}`,
    `items: ${[...byStep, `${finished} finished`].join(", ")}`,
    ...[...knowledge.spent].map(
      ([day, { submitted, credits }]) => `${day}: ${submitted} submitted, ${plural(credits, "credit")}`,
    ),
  ];
}
