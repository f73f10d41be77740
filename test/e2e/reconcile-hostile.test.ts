import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_KEY } from "../../sandbox/server.ts";
import { file } from "../support/cli.ts";
import { hurriedClock } from "../support/in-process.ts";
import { ghost, ids, OLD, type Row, reconcile } from "../support/reconcile.ts";
import { runs } from "../support/runs.ts";
import { serve } from "../support/serve.ts";

/** A request for rows of some days; without `from` it is for everyone. */
type Asked = { readonly isExport: boolean; readonly from: string; readonly to: string };
/** Happens before an answer, which shows the rows that it returns, or else all. */
type Before = (asked: Asked, nth: number) => readonly Row[] | undefined;
type Person = { readonly id: string; discoveredAt: string | null };

/** The config of a service that shows these people, newest first, as badly as its interface allows. */
async function serviceOf(people: readonly Row[], before: Before = () => undefined): Promise<string> {
  let nth = 0;
  const { url } = await serve((request, response) => {
    const { pathname, searchParams } = new URL(`${request.url}`, "http://service");
    const from = searchParams.get("discovered_from") ?? "";
    const to = searchParams.get("discovered_to") ?? "9";
    const [limit, page] = [Number(searchParams.get("limit")), Number(searchParams.get("page") ?? 1)];
    const isExport = pathname.endsWith("/stream");
    const rows = (before({ isExport, from, to }, nth++) ?? people)
      .filter(({ discoveredAt: date }) => !from || (date !== null && date >= from && date.slice(0, 10) <= to))
      .toSorted((a, b) => ((a.discoveredAt ?? "") < (b.discoveredAt ?? "") ? 1 : -1))
      .map((row) => JSON.stringify({ ...row, sources: [] }).replace(/"(\d{16,})"/, "$1"));
    const data = rows.slice((page - 1) * limit, page * limit).join(",");
    const pagination = JSON.stringify({ page, limit, total: rows.length, totalPages: 1 });
    const list = `{"success":true,"pagination":${pagination},"data":[${data}]}`;
    response.end(isExport ? rows.map((row) => `${row}\n`).join("") : list);
  });
  const settings = { max_window_rows: 1_000, requests_per_minute: 6_000 };
  return await file("config.json", { base_url: url, api_key: DEFAULT_KEY, ...settings });
}

const dateOf = (day: number): string => new Date(Date.UTC(2024, 0, 1 + day, 12)).toISOString();

/** People of forty days; the last two have no date. */
const crowd = (size: number, name = "p"): Person[] =>
  Array.from({ length: size }, (_, nth) => ({
    id: `${name}${nth}`,
    discoveredAt: nth < size - 2 ? dateOf(nth % 40) : null,
  }));

/** So many that they are read in several windows of days. */
const OTHERS = crowd(1_200, "other-");
const copyOf = (people: readonly Person[]): Row[] => people.map((row) => ({ ...row }));
const clock = hurriedClock(500);

describe("gone.csv names no one who is alive", () => {
  it.each<[string, number, string, (date: string | null, asked: Asked) => string | null]>([
    [
      "gets the date of an old day while newer days are read",
      ...([0, "complete"] as const),
      (date, { from }) => (from > "2024-01-20" ? dateOf(2) : date),
    ],
    [
      "is in no days that are asked for, but in the number of everyone",
      ...([2, "counts 1 row more than it showed"] as const),
      (_, { from }) => dateOf(from > "2024-01-01" ? 0 : 39),
    ],
  ])("where a person %s", async (_, code, why, move) => {
    const people = [...OTHERS, ...crowd(3)];
    const person = people.at(-3) as Person;
    const table = [...copyOf(people), ghost(1, dateOf(9))];
    const config = await serviceOf(people, (asked) => {
      person.discoveredAt = move(person.discoveredAt, asked);
      return undefined;
    });
    const { code: answer, gone, stderr } = await reconcile(config, table, [], { clock });
    // The table has the date of before, so that its row may count as stale.
    expect([answer === 1 ? 0 : answer, gone], stderr).toEqual([code, code === 2 ? [] : ["erased-1"]]);
    expect(stderr).toContain(why);
  });

  it.each<[string, number, readonly Row[]]>([
    ["nobody", 90, []],
    ["nobody", 30_000, []],
    ["one other person", 90, [{ id: "other", discoveredAt: dateOf(3) }]],
    ["one of them", 90, crowd(90).slice(3, 4)],
  ])("where the service shows %s of %i as long as it is read", async (_, size, shown) => {
    const people = crowd(size);
    const config = await serviceOf(shown);
    for (const most of ["", "40", ...(shown[0]?.id === "p3" ? [] : [`${size}`])]) {
      const more = most === "" ? [] : ["--yes-gone", most];
      const { code, gone, stderr } = await reconcile(config, people, more, { clock });
      expect([code, gone.length], stderr).toEqual([2, 0]);
    }
  });

  it("where a replica without some people answers each request but the first counts of a read", async () => {
    const people = [...OTHERS, ...crowd(9)];
    let last = "";
    const config = await serviceOf(people, ({ from, to }) => {
      const isFirst = to === "9" && [from, last].includes("1970-01-02");
      last = from;
      return isFirst
        ? undefined
        : people.filter(({ discoveredAt: date }) => date === null || date > dateOf(2));
    });
    const { code, gone, stderr } = await reconcile(config, people, [], { clock });
    expect([code, gone], stderr).toEqual([2, []]);
  });

  it.each([
    ["numbers beyond 2^53", ["90071992547409930", "90071992547409931", "90071992547409932"]],
    ["texts with line breaks", ["a\r\nb", "a\nb", "a\rb", "\r\n", " a\n", 'a"\r\nb', "a\r\n"]],
  ])("where keys are %s", async (_, keys) => {
    const people = keys.map((id) => ({ id, discoveredAt: dateOf(3) }));
    const csvOf = (rows: readonly Row[], end = "\n"): string =>
      [
        "id,discoveredAt",
        ...rows.map(({ id, discoveredAt: date }) => `"${id.replaceAll('"', '""')}",${date}`),
        "",
      ].join(end);
    const jsonOf = (rows: readonly Row[]): string =>
      rows.map((row) => `${JSON.stringify(row).replace(/"(\d{16,})"/, "$1")}\n`).join("");
    const config = await serviceOf(people);
    for (const table of [csvOf(people), csvOf(people, "\r\n"), jsonOf(people)])
      expect(await reconcile(config, await file("keys", table))).toMatchObject({
        code: 0,
        lost: [],
        gone: [],
      });
    const lacking = await file("keys", csvOf(people.slice(1)));
    expect(await reconcile(config, lacking)).toMatchObject({ code: 1, lost: [{}] });
    const erased = await reconcile(await serviceOf(people.slice(1)), await file("keys", csvOf(people)));
    expect(erased).toMatchObject({ code: 0, lost: [], report: { gone: 1 } });
  });

  it("and no lost row is missed where people arrive, move, leave or hide before any request", async () => {
    const event = fc.record({
      before: fc.nat(60),
      who: fc.nat(20),
      what: fc.constantFrom("move", "move", "arrive", "erase", "hide"),
      day: fc.option(fc.nat(40), { nil: null }),
    });
    const answers: (number | null)[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (events) => {
        const people = new Map(crowd(20).map((row) => [row.id, row.discoveredAt]));
        const shown = (): Row[] => [
          ...OTHERS,
          ...Array.from(people, ([id, discoveredAt]) => ({ id, discoveredAt })),
        ];
        const erased = ["erased-1", "erased-2"];
        const [missing, aged] = [7, 8].map((rest) => OTHERS.filter((_, nth) => nth % 400 === rest));
        const held = shown().filter((row) => !missing?.includes(row));
        const table = held.map((row) => (aged?.includes(row) ? { ...row, discoveredAt: OLD } : row));
        table.push(ghost(1, dateOf(1)), ghost(2, dateOf(38)));
        const config = await serviceOf([], (_, nth) => {
          const now = events.filter(({ before }) => before === nth);
          for (const { who, what, day } of now) {
            const [id, date] = [`p${who}`, day === null ? null : dateOf(day)];
            if (what === "arrive") people.set(`new-${who}`, date);
            else if (what === "move" && people.has(id)) people.set(id, date);
            else if (what === "erase" && people.delete(id)) erased.push(id);
          }
          const hidden = now.flatMap(({ what, who }) => (what === "hide" ? [`p${who}`] : []));
          return shown().filter(({ id }) => !hidden.includes(id));
        });
        const { code, lost, gone, stderr } = await reconcile(config, table, [], { clock });
        answers.push(code);
        expect(
          gone.filter((id) => !erased.includes(id)),
          stderr,
        ).toEqual([]);
        if (code === 2) return;
        expect(gone).toEqual(expect.arrayContaining(["erased-1", "erased-2"]));
        const unmoved = [...(missing ?? []), ...(aged ?? [])];
        expect(ids(lost), stderr).toEqual(expect.arrayContaining(ids(unmoved)));
      }),
      { numRuns: runs(8, 600) },
    );
    expect(answers.some((code) => code !== 2)).toBe(true);
  });
});
