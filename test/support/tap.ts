import { expect } from "vitest";
import { linesOf } from "./airbyte-messages.ts";
import { type Ended, file, type RunOptions, run, TAP } from "./cli.ts";
import { expectSingerMessages, type SingerMessage } from "./singer-messages.ts";

export { TAP } from "./cli.ts";
export { configFor } from "./configs.ts";

type Log = { readonly level: string; readonly message: string } & Readonly<Record<string, unknown>>;

type Tapped = Ended & { readonly messages: readonly SingerMessage[]; readonly logs: readonly Log[] };

/**
 * Runs a sync and holds every message that it wrote against what the strictest targets take.
 * @param exits with which code; null for a run that a signal ends
 */
export async function tap(
  args: readonly string[],
  { exits = 0, ...options }: RunOptions & { readonly exits?: number | null } = {},
): Promise<Tapped> {
  const ended = await run(TAP, args, options);
  expect(ended.code, ended.stderr).toBe(exits);
  const logs = linesOf(ended.stderr).map((line): Log => JSON.parse(line));
  return { ...ended, logs, messages: expectSingerMessages(linesOf(ended.stdout)) };
}

type Metadata = { breadcrumb: string[]; metadata: Record<string, unknown> };

type Entry = {
  tap_stream_id: string;
  replication_method: string;
  schema: { properties: Record<string, { properties?: Record<string, unknown> }> };
  metadata: Metadata[];
};

export type Catalog = { streams: Entry[] };

export async function discover(config: string): Promise<Catalog> {
  return JSON.parse((await run(TAP, ["--config", config, "--discover"])).stdout);
}

/** Writes a catalog as an orchestrator sends it back: these streams selected, and fields as they are named. */
export async function selection(
  catalog: Catalog,
  streams: readonly string[],
  fields: Readonly<Record<string, boolean>> = {},
): Promise<string> {
  const chosen = structuredClone(catalog);
  for (const { tap_stream_id: id, metadata } of chosen.streams) {
    for (const { breadcrumb, metadata: said } of metadata) {
      const path = [id, ...breadcrumb.filter((part) => part !== "properties")].join(".");
      said["selected"] = breadcrumb.length === 0 ? streams.includes(id) : (fields[path] ?? true);
    }
  }
  return await file("catalog.json", chosen);
}

export const recordsOf = (messages: readonly SingerMessage[], stream: string): readonly SingerMessage[] =>
  messages.filter((message) => message.type === "RECORD" && message.stream === stream);

/** Fails the test if a record of a stream has one of these fields. */
export function expectWithout(messages: readonly SingerMessage[], stream: string, ...fields: string[]): void {
  for (const { record } of recordsOf(messages, stream))
    for (const field of fields) expect(record).not.toHaveProperty(field);
}

export const schemasOf = (messages: readonly SingerMessage[], stream?: string): readonly SingerMessage[] =>
  messages.filter((message) => message.type === "SCHEMA" && message.stream === (stream ?? message.stream));

export const bookmarksOf = (messages: readonly SingerMessage[]): Readonly<Record<string, unknown>> =>
  messages.at(-1)?.value?.bookmarks ?? {};
