// Tables that target-postgres fills: docs/meltano.md and docs/reconcile.md.
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SandboxOptions } from "../../../sandbox/server.ts";
import { configFor } from "../../support/configs.ts";
import { docBlock } from "../../support/docs.ts";
import { ghost, ids, people, type Row, reconcile } from "../../support/reconcile.ts";
import { outputOf } from "../../support/run.ts";
import { documented, newProject, type Project, settings, TAP } from "./project.ts";

/** Runs statements in the PostgreSQL of the suite; returns the lines that they select. */
async function sql(stdin: string, { folder }: Project): Promise<string[]> {
  const text = await outputOf("psql", ["-qAt", "-v", "ON_ERROR_STOP=1"], { cwd: folder, stdin });
  return text.split("\n").filter((line) => line !== "");
}

/** A project that loads into a schema of its own. */
async function loading(schema: string, options: SandboxOptions): Promise<Project> {
  const { PGHOST = "", PGPORT = "", PGUSER = "", PGPASSWORD = "", PGDATABASE = "" } = process.env;
  const server = { HOST: PGHOST, PORT: PGPORT, USER: PGUSER, PASSWORD: PGPASSWORD, DATABASE: PGDATABASE };
  const mine = await newProject(options);
  Object.assign(mine.env, settings({ ...server, DEFAULT_TARGET_SCHEMA: schema }, "TARGET_POSTGRES"));
  await mine.sync("target-postgres");
  return mine;
}

const idsWhere = (where: string, mine: Project): Promise<string[]> =>
  sql(`SELECT id FROM whole.people WHERE _sdc_deleted_at ${where}`, mine);

/** Dates in one form; those of PostgreSQL are in UTC and do not say so. */
const rowsOf = (lines: readonly string[]): object[] =>
  lines.map((line) =>
    JSON.parse(line, (name, value) =>
      ["discoveredAt", "addedAt"].includes(name) && value ? Date.parse(value.replace(/Z?$/, "Z")) : value,
    ),
  );

async function expectService(schema: string, mine: Project): Promise<void> {
  const { sandbox } = mine;
  const tables = { people: sandbox.people(), companies: sandbox.companies(), sources: sandbox.sources() };
  for (const [table, records] of Object.entries(tables)) {
    const key = { people: "id", companies: "domain" }[table] ?? "slug";
    const lines = await sql(`SELECT to_jsonb(t) FROM ${schema}.${table} t ORDER BY ${key} COLLATE "C"`, mine);
    const sorted = records.map((record) => [Object(record)[key], JSON.stringify(record)] as const);
    const expected = sorted.toSorted(([one], [two]) => (one < two ? -1 : 1)).map(([, text]) => text);
    expect(rowsOf(lines), table).toMatchObject(rowsOf(expected));
  }
}

it("target-postgres makes tables equal to the service, also after changes", async () => {
  await using mine = await loading("kept", { people: 1500, companies: 30 });
  const { sandbox } = mine;
  await expectService("kept", mine);
  sandbox.arrive(5);
  sandbox.recheck(25);
  sandbox.advance(86_400_000);
  sandbox.recheck(10);
  await mine.shell(documented("budget"));
  await mine.sync("target-postgres");
  await expectService("kept", mine);
});

it("target-postgres learns which rows are current when a table is read whole as the page says", async () => {
  await using mine = await loading("whole", { people: 200, companies: 5 });
  await sql("INSERT INTO whole.people (id) VALUES ('erased')", mine);
  await mine.shell(documented("full-table"));
  expect(await idsWhere("IS NOT NULL", mine)).toEqual(["erased"]);
  expect((await idsWhere("IS NULL", mine)).sort()).toEqual(ids(people(mine.sandbox)));
  expect(await sql("SELECT 1 FROM whole.companies WHERE _sdc_deleted_at IS NOT NULL", mine)).toEqual([]);
});

it("reconcile names what a table lost, and the next sync loads it as docs/reconcile.md says", async () => {
  await using mine = await loading("crm", { people: 400, undated: 3, days: 60 });
  await copyFile(await configFor(mine.sandbox), join(mine.folder, "config.json"));
  const state = join(mine.folder, "state.json");
  await mine.shell(`meltano --log-level=error state get dev:${TAP}-to-target-postgres > ${state}`);
  const query = docBlock("docs/reconcile.md", "sql", "\\copy").replace("FROM people", "FROM crm.people");
  const compare = async () => {
    await sql(query, mine);
    const [config, keys] = ["config.json", "keys.csv"].map((name) => join(mine.folder, name));
    const { code, lost, gone, stderr } = await reconcile(`${config}`, `${keys}`, ["--state", state]);
    return { code, lost: ids(lost), gone, stderr };
  };
  expect(await compare()).toMatchObject({ code: 0, lost: [], gone: [] });

  const all = people(mine.sandbox);
  const [lost, old] = [7, 8].map((rest) => all.filter((_, nth) => nth % 90 === rest));
  const both = [...(lost ?? []), ...(old ?? [])];
  const listOf = (rows: readonly Row[] = []): string => rows.map(({ id }) => `'${id}'`).join(", ");
  await sql(
    `DELETE FROM crm.people WHERE id IN (${listOf(lost)});
     UPDATE crm.people SET "discoveredAt" = '2020-01-01' WHERE id IN (${listOf(old)});
     INSERT INTO crm.people (id, "discoveredAt") VALUES ('${ghost(1).id}', '${ghost(1).discoveredAt}')`,
    mine,
  );
  expect(await compare()).toMatchObject({ code: 1, lost: ids(both), gone: ["erased-1"] });
  await mine.shell(docBlock("docs/reconcile.md", "sh", "meltano state set"));
  expect(await compare()).toMatchObject({ code: 0, lost: [], gone: ["erased-1"] });
});
