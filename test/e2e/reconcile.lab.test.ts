import { expect, it } from "vitest";
import { dice } from "../support/dice.ts";
import { dayOf, ghost, ids, OLD, people, type Row, reconcile, synced } from "../support/reconcile.ts";
import { runs } from "../support/runs.ts";

const HISTORIES = Number(process.env["TEST_SEEDS"] ?? runs(2, 24));

/** What happens at the service while it is compared. */
const MEANWHILE = "move=3 undate=2 date-undated=1 arrive-undated=2 recheck=5 arrive=3 drain=1:every=40".split(
  " ",
);

/**
 * Compares a table that has lost rows, has some old, twice, or of people who are gone, while the service moves on.
 * @returns the exit code
 */
async function history(seed: number): Promise<number | null> {
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
    all.filter((row) => dayOf(row) !== "none" && !lost.includes(row)),
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
  const found = await reconcile(config, table, ["--state", state]);
  sandbox.fault();
  const said = `seed ${seed} ${JSON.stringify({ ...account, ...filter, meanwhile })}: ${found.stderr}`;
  const now = new Map(people(sandbox).map((row) => [row.id, row.discoveredAt]));
  const isUnmoved = ({ id, discoveredAt }: Row): boolean => now.get(id) === discoveredAt;
  expect(found.code, said).toBeDefined();
  expect(
    found.gone.filter((id) => now.has(id)),
    said,
  ).toEqual([]);
  // Nothing tells people without a date who arrived since the last sync from those that the table lost.
  const since = found.lost.filter((row) => dayOf(row) === "none" && !all.some(({ id }) => id === row.id));
  expect(ids([...lost, ...stale, ...since]), said).toEqual(expect.arrayContaining(ids(found.lost)));
  if (found.code === 2) return found.code;
  expect(found.gone, said).toEqual(ids(ghosts));
  expect(ids(found.lost), said).toEqual(expect.arrayContaining(ids([...lost, ...stale].filter(isUnmoved))));
  return found.code;
}

it(`reconcile calls no one alive gone and misses no lost row, in ${HISTORIES} histories`, {
  timeout: 3_600_000,
}, async () => {
  const answers = new Set<number | null>();
  for (let seed = 1; seed <= HISTORIES; seed++) answers.add(await history(seed));
  expect([...answers]).toContain(1);
});
