// Compares tables that loaders have filled through Meltano with the service, on DuckDB and PostgreSQL.
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { CONNECTOR, file, run } from "../../support/cli.ts";
import { configFor } from "../../support/configs.ts";
import { docBlock } from "../../support/docs.ts";
import { dayOf, ghost, ids, people, type Row, reconcile } from "../../support/reconcile.ts";
import { outputOf } from "../../support/run.ts";
import { type Postgres, startPostgres } from "./postgres.ts";
import { program } from "./programs.ts";
import { type Project, shareProject } from "./project.ts";

const ACCOUNT = { people: 400, undated: 3, days: 60, companies: 5, requestsPerMinute: 0 } as const;
const TARGET_DUCKDB = `name: target-duckdb
namespace: target_duckdb
executable: target-duckdb
settings:
- {name: filepath, value: contacts.duckdb}
- {name: default_target_schema, value: crm}
- {name: batch_size_rows, kind: integer, value: 100}
`;

const shared = shareProject({ people: 20, companies: 5 });
let postgres: Postgres;

beforeAll(async () => {
  postgres = await startPostgres();
  await writeFile(join(shared.project.folder, "target-duckdb.yml"), TARGET_DUCKDB);
  await shared.project.shell("meltano add target-duckdb --from-ref target-duckdb.yml");
});

afterAll(async () => {
  await postgres?.stop();
});

/** A database that a loader of Meltano fills. */
type Warehouse = {
  readonly loader: string;
  readonly dialect: string;
  readonly settings: () => Readonly<Record<string, string>>;
  /** Runs statements; @returns the lines that the last one selects */
  readonly sql: (project: Project, text: string) => Promise<string[]>;
};

const DUCKDB: Warehouse = {
  ...{ loader: "target-duckdb", dialect: "duckdb", settings: () => ({}) },
  async sql({ folder: cwd }, text) {
    const python =
      "import duckdb, sys; [print(row[0]) for row in duckdb.connect('contacts.duckdb').execute(sys.argv[1]).fetchall()]";
    return linesOf(await outputOf(program("target-duckdb", "python"), ["-c", python, text], { cwd }));
  },
};

const POSTGRES: Warehouse = {
  ...{ loader: "target-postgres", dialect: "postgres" },
  settings: () => ({
    ...{ TARGET_POSTGRES_HOST: "127.0.0.1", TARGET_POSTGRES_PORT: `${postgres.port}` },
    ...{ TARGET_POSTGRES_USER: postgres.user, TARGET_POSTGRES_PASSWORD: postgres.password },
    ...{ TARGET_POSTGRES_DATABASE: postgres.database, TARGET_POSTGRES_DEFAULT_TARGET_SCHEMA: "crm" },
  }),
  async sql({ folder: cwd }, text) {
    const at = ["-h", "127.0.0.1", "-p", `${postgres.port}`, "-U", postgres.user, "-v", "ON_ERROR_STOP=1"];
    const script = await file("script.sql", text);
    return linesOf(await outputOf("psql", [...at, "-qAt", "-f", script], { cwd }));
  },
};

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");

/** Tables of a loader, and how they are compared. */
async function loaded({ loader, dialect, settings, sql }: Warehouse, service: Sandbox) {
  const project = await shared.project.copy(service, settings());
  const state = join(project.folder, "state.json");
  const id = `dev:tap-contact-intelligence-to-${loader}`;
  const config = join(project.folder, "config.json");
  await copyFile(await configFor(service), config);
  const sync = async (): Promise<void> => {
    await project.sync(loader);
    await project.shell(`meltano --log-level=error state get ${id} > ${state}`);
  };
  /** What the command's own query says of a table. */
  const keysOf = async (table: string): Promise<string> => {
    await sql(project, (await run(CONNECTOR, ["reconcile", "--sql", dialect, "--table", table])).stdout);
    return join(project.folder, "keys.csv");
  };
  const compare = async (...more: string[]) =>
    await reconcile(config, await keysOf("crm.people"), ["--state", state, ...more]);
  return { ...{ project, sync, keysOf, compare }, sql: (text: string) => sql(project, text) };
}

const listOf = (rows: readonly Row[]): string => rows.map(({ id }) => `'${id}'`).join(", ");
const valuesOf = (rows: readonly Row[]): string =>
  rows.map(({ id, discoveredAt: at }) => `('${id}', ${at === null ? "NULL" : `'${at}'`})`).join(", ");
const datedOf = (rows: readonly Row[]): Row[] => rows.filter((row) => dayOf(row) !== "none");

describe("reconcile", () => {
  it("names the rows of each batch that target-duckdb 0.8.0 has lost", async () => {
    await using service = await startSandbox(ACCOUNT);
    const { project, sync, sql, compare } = await loaded(DUCKDB, service);
    await using _ = project;
    await sync();
    const held = new Set(await sql("SELECT id FROM crm.people"));
    const lost = people(service).filter(({ id }) => !held.has(id));
    expect(lost.length).toBeGreaterThan(2);
    const full = await compare("--full");
    expect([full.code, ids(full.lost), full.gone], full.stderr).toEqual([1, ids(lost), []]);
    const counts = await compare();
    expect([counts.code, ids(counts.lost)], counts.stderr).toEqual([1, ids(datedOf(lost))]);
  });

  it("lets the next sync bring what was deleted from PostgreSQL", async () => {
    await using service = await startSandbox(ACCOUNT);
    const { project, sync, sql, compare } = await loaded(POSTGRES, service);
    await using _ = project;
    await sync();
    expect((await compare("--full")).code).toBe(0);
    const all = people(service);
    const [lost, old] = [all.filter((_, nth) => nth % 90 === 7), all.filter((_, nth) => nth % 90 === 8)];
    await sql(`DELETE FROM crm.people WHERE id IN (${listOf(lost)});
      UPDATE crm.people SET "discoveredAt" = '2020-01-01' WHERE id IN (${listOf(old)});
      INSERT INTO crm.people (id, "discoveredAt") VALUES ${valuesOf([ghost(1)])}`);
    const counts = await compare();
    expect([counts.code, ids(counts.lost)], counts.stderr).toEqual([1, ids(datedOf([...lost, ...old]))]);
    const full = await compare("--full");
    expect([full.code, ids(full.lost), full.gone], full.stderr).toEqual([
      1,
      ids([...lost, ...old]),
      ["erased-1"],
    ]);
    await project.shell(docBlock("docs/reconcile.md", "sh", "meltano state set"));
    const after = await compare("--full");
    expect([after.code, after.lost, after.gone], after.stderr).toEqual([0, [], ["erased-1"]]);
  });
});
