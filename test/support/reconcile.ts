import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Sandbox, SandboxOptions } from "../../sandbox/server.ts";
import { CONNECTOR, file, type RunOptions, run } from "./cli.ts";
import { sandboxWith } from "./configs.ts";
import { tempDir } from "./temp-dir.ts";

/** A person, as a table keeps one. */
export type Row = { readonly id: string; readonly discoveredAt: string | null };

export const people = (sandbox: Sandbox): Row[] => sandbox.people() as unknown as Row[];
export const ids = (rows: readonly Row[]): string[] => rows.map(({ id }) => id).sort();
export const dayOf = ({ discoveredAt }: Row): string => discoveredAt?.slice(0, 10) ?? "none";
export const OLD = "2020-01-01T00:00:00Z";
/** Somebody whom the service does not have. */
export const ghost = (nth: number, discoveredAt = OLD): Row => ({ id: `erased-${nth}`, discoveredAt });

export const csvOf = (rows: readonly Row[]): string =>
  `id,discoveredAt\n${rows.map(({ id, discoveredAt }) => `${id},${discoveredAt ?? ""}\n`).join("")}`;

/** Compares a table, and says what the folder of results holds. */
export async function reconcile(
  config: string,
  table: readonly Row[] | string,
  more: readonly string[] = [],
  options: RunOptions = {},
) {
  const folder = join(await tempDir(), "found");
  const path = typeof table === "string" ? table : await file("keys.csv", csvOf(table));
  const words = ["reconcile", "--config", config, "--table", path, "--output", folder, ...more];
  const { code, stdout, stderr } = await run(CONNECTOR, words, options);
  const lines = (name: string): string[] =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1) : [];
  const listed = (name: string): string[] => lines(name).slice(1).sort();
  return {
    ...{ code, stderr, stdout, folder, report: JSON.parse(stdout.split("\n")[0] || "null") },
    lost: lines("lost.jsonl").map((line) => JSON.parse(line) as Row),
    ...{ gone: listed("gone.csv"), suppressed: listed("suppressed.csv") },
  };
}

/** An account whose people a table holds, and the state of the sync that filled it. */
export async function synced(options: SandboxOptions = {}, settings: object = {}) {
  const account = { people: 600, undated: 4, days: 60, ...options };
  const { sandbox, config } = await sandboxWith(account, settings);
  const state = join(await tempDir(), "state.json");
  const read = ["read", "--config", config, "--state-file", state, "--format", "jsonl", "--stream", "people"];
  const { code, stdout } = await run(CONNECTOR, read);
  expect(code).toBe(0);
  const rows = stdout.trimEnd().split("\n");
  return { sandbox, config, state, all: rows.map((line) => JSON.parse(line) as Row) };
}
