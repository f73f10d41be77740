import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Sandbox, SandboxOptions } from "../../sandbox/server.ts";
import { CONNECTOR, file, type RunOptions, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { dice } from "../support/dice.ts";
import { runs } from "../support/runs.ts";
import { tempDir } from "../support/temp-dir.ts";

type Row = { readonly id: string; readonly discoveredAt: string | null };

const people = (sandbox: Sandbox): Row[] => sandbox.people() as unknown as Row[];
const ids = (rows: readonly Row[]): string[] => rows.map(({ id }) => id).sort();
const dayOf = ({ discoveredAt }: Row): string => discoveredAt?.slice(0, 10) ?? "none";
const OLD = "2020-01-01T00:00:00Z";
const ghost = (nth: number, discoveredAt: string = OLD): Row => ({ id: `erased-${nth}`, discoveredAt });

const csvOf = (rows: readonly Row[]): string =>
  `id,discoveredAt\n${rows.map(({ id, discoveredAt }) => `${id},${discoveredAt ?? ""}\n`).join("")}`;

async function reconcile(
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
    ...{ gone: listed("gone.csv"), suppressed: listed("suppressed.csv"), unclear: listed("unclear.csv") },
  };
}

/** An account whose people a table holds, and the state of the sync that filled it. */
async function synced(options: SandboxOptions = {}, settings: object = {}) {
  const account = { people: 600, undated: 4, days: 60, requestsPerMinute: 0, ...options };
  const { sandbox, config } = await sandboxWith(account, settings);
  const state = join(await tempDir(), "state.json");
  const read = ["read", "--config", config, "--state-file", state, "--format", "jsonl", "--stream", "people"];
  const { code, stdout } = await run(CONNECTOR, read);
  expect(code).toBe(0);
  const rows = stdout.trimEnd().split("\n");
  return { sandbox, config, state, all: rows.map((line) => JSON.parse(line) as Row) };
}

describe("reconcile", () => {
  it("names what a table lost, holds old, and has of people who are gone", async () => {
    const { config, state, all } = await synced({ people: 1_500, days: 90 });
    const dated = all.filter(({ discoveredAt }) => discoveredAt !== null);
    const undated = all.filter(({ discoveredAt }) => discoveredAt === null);
    const [lost, stale] = [dated.slice(100, 103), dated.slice(700, 702)];
    const kept = all.filter((row) => ![...lost, ...stale, undated[0]].includes(row));
    const table = [
      ...kept,
      ...stale.map(({ id }) => ({ id, discoveredAt: OLD })),
      ghost(1),
      ghost(1, "2019-01-01"),
    ];
    const zone = ["--timezone", "UTC"];
    const full = await reconcile(config, table, ["--full", ...zone]);
    expect([full.code, full.stderr]).toEqual([1, expect.not.stringContaining("Cannot")]);
    expect(ids(full.lost)).toEqual(ids([...lost, ...stale, ...undated.slice(0, 1)]));
    expect(full.lost[0]).toMatchObject({ lastName: expect.anything() });
    expect(full.gone).toEqual(["erased-1"]);
    expect(full.report).toMatchObject({ lost: 4, stale: 2, gone: 1, days: { none: { lost: 1 } } });
    expect(full.report.rows_read).toBeLessThan(all.length * 1.2);
    for (const name of ["lost.jsonl", "gone.csv", "suppressed.csv", "unclear.csv", "report.json"])
      expect(statSync(join(full.folder, name)).mode & 0o777, name).toBe(0o600);
    const counts = await reconcile(config, table, ["--state", state, ...zone]);
    expect(counts.code, counts.stderr).toBe(1);
    expect(ids(counts.lost)).toEqual(ids([...lost, ...stale]));
    expect(counts.report).toMatchObject({ gone: null, not_looked_at: [], unanswered: [] });
    expect(counts.report.requests).toBeLessThanOrEqual(300);
    for (const more of [["--full"], ["--state", state]]) {
      const whole = await reconcile(config, all, more);
      expect([whole.code, whole.lost, whole.gone], whole.stderr).toEqual([0, [], []]);
    }
  });

  const HISTORIES = runs(20, 60);

  it(`calls nobody alive gone and misses no lost row, in ${HISTORIES} histories`, {
    timeout: 600_000,
  }, async () => {
    const first = Number(process.env["TEST_FIRST_SEED"] ?? 1);
    const most = Number(process.env["TEST_SEEDS"] ?? HISTORIES);
    for (let seed = first; seed < first + most; seed++) await history(seed);
  });
});

/** What happens at the service while it is compared. */
const MEANWHILE = [
  "move=3",
  "undate=2",
  "date-undated=1",
  "arrive-undated=2",
  "recheck=5",
  "arrive=3",
  "drain=1:every=40",
];

async function history(seed: number): Promise<void> {
  const roll = dice(seed);
  const some = <T>(from: readonly T[], most: number): T[] => {
    const count = Math.min(roll(most + 1), from.length);
    return [...new Set(Array.from({ length: count }, () => from[roll(from.length)] as T))];
  };
  const filter = roll(4) === 0 ? { is_user: "true" } : {};
  const account = { people: 60 + roll(200), undated: roll(6), days: 10 + roll(300), seed };
  const { sandbox, config, state, all } = await synced(account, filter);
  const lost = [...new Set([...some(all, 8), ...some(all.slice(-3), 1)])];
  const stale = some(
    all.filter((row) => !lost.includes(row)),
    roll(2) * 4,
  );
  const ghosts = Array.from({ length: roll(2) * roll(6) }, (_, nth) =>
    ghost(nth, all[roll(all.length)]?.discoveredAt ?? OLD),
  );
  const kept = all.filter((row) => !lost.includes(row) && !stale.includes(row));
  const aged = stale.map(({ id }, nth) => ({ id, discoveredAt: `2020-01-0${(nth % 9) + 1}T00:00:00.000Z` }));
  const table = [...kept, ...aged, ...ghosts, ...some(kept, 5)];
  for (let day = roll(3); day > 0; day--) {
    sandbox.advance(86_400_000);
    sandbox.recheck(roll(10));
    sandbox.arrive(roll(5));
    sandbox.arrive(roll(2), { undated: true });
  }
  if (filter.is_user !== undefined) sandbox.recheck(roll(10), { isUser: false });
  const meanwhile = some(MEANWHILE, 4);
  sandbox.fault(...meanwhile);
  const full = await reconcile(config, table, ["--full", "--state", state]);
  sandbox.fault();
  const said = `seed ${seed} ${JSON.stringify({ ...account, ...filter, meanwhile })}: ${full.stderr}`;
  const now = new Map(people(sandbox).map((row) => [row.id, row.discoveredAt]));
  const isUnmoved = ({ id, discoveredAt }: Row): boolean => now.get(id) === discoveredAt;
  expect(full.code, said).not.toBe(undefined);
  expect(
    full.gone.filter((id) => now.has(id)),
    said,
  ).toEqual([]);
  expect(ids([...lost, ...stale]), said).toEqual(expect.arrayContaining(ids(full.lost)));
  if (full.code !== 2) {
    expect(full.gone, said).toEqual(ids(ghosts));
    expect(ids(full.lost), said).toEqual(expect.arrayContaining(ids([...lost, ...stale].filter(isUnmoved))));
  }
  const counts = await reconcile(config, table, ["--state", state]);
  const why = `${said} by counts: ${counts.stderr}`;
  expect([0, 1], why).toContain(counts.code);
  expect(ids([...lost, ...stale]), why).toEqual(expect.arrayContaining(ids(counts.lost)));
  // What is too many in a range hides what it lacks.
  const hidden =
    filter.is_user !== undefined ||
    ghosts.length > 0 ||
    stale.length > 0 ||
    kept.some((row) => dayOf(row) !== "none" && now.get(row.id) === null);
  if (!hidden)
    expect(ids(counts.lost), why).toEqual(ids(lost.filter((row) => isUnmoved(row) && dayOf(row) !== "none")));
}
