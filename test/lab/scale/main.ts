import { readFileSync, writeFileSync } from "node:fs";
import { SPREADS, type Spread } from "./account.ts";
import { type Load, simulate } from "./simulate.ts";

const PAGE = new URL("../../../docs/scale.md", import.meta.url);
const PEOPLE = [10_000_000, 100_000_000, 1_000_000_000];
const SPEEDS = [5_000, 20_000, 100_000];
const SHARDS = [1, 4, 16];

/** Prints the tables of docs/scale.md; with `--write` puts them into the page. Returns the exit code. */
export async function main(words: readonly string[], print: (text: string) => void): Promise<number> {
  const tables = [await requestTable(), await hoursTable()].join("\n\n");
  print(tables);
  if (words.includes("--write")) {
    const page = readFileSync(PAGE, "utf8");
    const marked = /(<!-- scale: [^\n]*-->\n).*?(<!-- \/scale -->)/s;
    writeFileSync(
      PAGE,
      page.replace(marked, (_all, head: string, tail: string) => `${head}\n${tables}\n\n${tail}`),
    );
  }
  return 0;
}

/** A row for each number of people and each of their spreads. */
async function rowsOf(
  cellsOf: (people: number, spread: Spread) => Promise<readonly string[]>,
): Promise<string[]> {
  const rows: string[] = [];
  for (const people of PEOPLE) {
    for (const spread of SPREADS)
      rows.push(`| ${[shown(people), spread, ...(await cellsOf(people, spread))].join(" | ")} |`);
  }
  return rows;
}

async function requestTable(): Promise<string> {
  const rows = await rowsOf(async (people, spread) => {
    const load = await simulate({ people, spread, shards: 1, rowsPerSecond: 20_000 });
    const counts = [load.requests, load.windows, load.rechecks].map(shown);
    return [...counts, String(load.mebibytes), shown(load.stateBytes)];
  });
  return [
    "One process, 20,000 rows a second on each connection:",
    "",
    "| people | spread | requests | windows | ranges to check again | memory, MiB | state, bytes |",
    "| ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ...rows,
  ].join("\n");
}

async function hoursTable(): Promise<string> {
  const columns = SPEEDS.flatMap((speed) => SHARDS.map((shards) => [speed, shards] as const));
  const rows = await rowsOf((people, spread) =>
    Promise.all(
      columns.map(async ([rowsPerSecond, shards]) =>
        hours(await simulate({ people, spread, shards, rowsPerSecond })),
      ),
    ),
  );
  const heads = columns.map(([speed, shards]) => `${speed / 1000}k × ${shards}`);
  return [
    "Hours of a first load, by rows a second on each connection × shards, and what binds: q the key's requests a minute, s the service's speed, c the connector:",
    "",
    `| people | spread | ${heads.join(" | ")} |`,
    `| ---: | --- |${" ---: |".repeat(heads.length)}`,
    ...rows,
  ].join("\n");
}

function hours({ hours, binds }: Load): string {
  const text =
    hours < 0.1 ? "<0.1" : hours < 10 ? hours.toFixed(1) : Math.round(hours).toLocaleString("en-US");
  return `${text} ${binds[0]}`;
}

const shown = (number: number): string => number.toLocaleString("en-US");
