// Runs what docs/erasure.md tells people to run, on DuckDB and PostgreSQL.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { recordsOf as dataOf } from "../../support/airbyte-messages.ts";
import { connector, file } from "../../support/cli.ts";
import { outputOf, succeed } from "../../support/run.ts";
import { configFor, discover, recordsOf, selection, tap } from "../../support/tap.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { type Postgres, startPostgres } from "./postgres.ts";
import { program } from "./programs.ts";

const PEOPLE = { companies: 3, seed: 7, requestsPerMinute: 0 } as const;

let postgres: Postgres;

beforeAll(async () => {
  postgres = await startPostgres();
});

afterAll(async () => {
  await postgres?.stop();
});

type Engine = "duckdb" | "postgres";

/** Runs a script in a folder; returns the ids that are left in the table that it made. */
async function idsAfter(engine: Engine, script: string, cwd: string): Promise<string[]> {
  const name = join(cwd, `${engine}.sql`);
  await writeFile(name, `DROP TABLE IF EXISTS people;\n${script}`);
  const last = "SELECT id FROM people ORDER BY id";
  if (engine === "duckdb") {
    const python = `import duckdb; c = duckdb.connect(); c.execute(open("${name}").read()); [print(r[0]) for r in c.execute("${last}").fetchall()]`;
    return (await outputOf(program("target-duckdb", "python"), ["-c", python], { cwd })).trim().split("\n");
  }
  const at = ["-h", "127.0.0.1", "-p", `${postgres.port}`, "-U", postgres.user, "-v", "ON_ERROR_STOP=1"];
  await succeed("psql", [...at, "-q", "-f", name], { cwd });
  return (await outputOf("psql", [...at, "-At", "-c", last], { cwd })).trim().split("\n");
}

const sqlOf = async (name: string): Promise<string> =>
  await readFile(new URL(`../../../docs/sql/${name}`, import.meta.url), "utf8");

const idsOf = (service: Sandbox): string[] =>
  service
    .people()
    .map(({ id }) => id)
    .toSorted();

/** A service of 120 people, and later the same service when 20 of them were erased. */
async function erasing(): Promise<{ full: Sandbox; erase: () => Promise<Sandbox> }> {
  const full = await startSandbox({ ...PEOPLE, people: 120 });
  return {
    full,
    erase: async () => {
      const { port } = full;
      await full.close();
      return await startSandbox({ ...PEOPLE, people: 100, port });
    },
  };
}

/** Someone arrives and some are checked again while everyone is read, and again afterwards. */
const MOVES = ["recheck=5:path=/people/stream", "arrive=3:path=/people/stream"];

function laterMoves(service: Sandbox): void {
  service.fault();
  service.arrive(2);
  service.recheck(4);
}

/** The rows of a table, each id once unless the table keeps all. */
const valuesOf = (rows: readonly (readonly [string, ...(string | null)[]])[], keepsAll: boolean): string => {
  const kept = keepsAll ? rows : [...new Map(rows.map((row) => [row[0], row])).values()];
  return kept
    .map((row) => `(${row.map((value) => (value === null ? "NULL" : `'${value}'`)).join(",")})`)
    .join(",");
};

describe.each<Engine>(["duckdb", "postgres"])(
  "on %s, people who were erased are deleted, and no one else",
  (engine) => {
    it.each([false, true])("after a refresh by Airbyte; all rows kept: %s", async (keepsAll) => {
      const { full, erase } = await erasing();
      const config = await configFor(full);
      const read = async (mode: string, generation: number, state: string): Promise<[string[], string]> => {
        const streams = [
          { stream: { name: "people" }, sync_mode: mode, generation_id: generation, sync_id: generation },
        ];
        const args = ["--config", config, "--catalog", await file("c.json", { streams }), "--state", state];
        const { code, messages } = await connector(["read", ...args]);
        expect(code).toBe(0);
        const ids = dataOf(messages, "people").map(({ id }) => String(id));
        const states = messages.flatMap((message) => message.state ?? []);
        return [ids, await file("s.json", states)];
      };
      const [before] = await read("full_refresh", 1, await file("none.json", []));
      const service = await erase();
      service.fault(...MOVES);
      const [refreshed, state] = await read("full_refresh", 2, await file("none.json", []));
      laterMoves(service);
      const [later] = await read("incremental", 2, state);
      await using _ = service;
      const rows = [
        ...before.map((id) => [id, "1"] as const),
        ...[...refreshed, ...later].map((id) => [id, "2"] as const),
      ];
      const script = `CREATE TABLE people (id varchar, _airbyte_generation_id bigint);
      INSERT INTO people VALUES ${valuesOf(rows, keepsAll)};`;
      const folder = await tempDir();
      expect((await idsAfter(engine, script, folder)).length).toBeGreaterThan(idsOf(service).length);
      const left = await idsAfter(engine, `${script}\n${await sqlOf("erased-airbyte.sql")}`, folder);
      expect([...new Set(left)].toSorted()).toEqual(idsOf(service));
    });

    it("after a full table in Meltano", async () => {
      const { full, erase } = await erasing();
      const config = await configFor(full, { emit_activate_version_messages: true });
      const incremental = await selection(await discover(config), ["people"]);
      const whole = await discover(config);
      Object.assign(whole.streams[0]?.metadata[0]?.metadata ?? {}, { "replication-method": "FULL_TABLE" });
      let received = Date.UTC(2026, 0, 1);
      const rowsOf = async (...args: string[]) => {
        const { messages } = await tap(["--config", config, ...args]);
        const rows = recordsOf(messages, "people").map(({ record, version }) => {
          received += 1;
          const moment = new Date(received).toISOString().replace("Z", "");
          return [String(record?.["id"]), moment, version?.toString() ?? null] as const;
        });
        return { rows, state: await file("state.json", messages.at(-1)?.value) };
      };
      const before = await rowsOf("--catalog", incremental);
      const service = await erase();
      service.fault(...MOVES);
      const refreshed = await rowsOf("--catalog", await selection(whole, ["people"]));
      laterMoves(service);
      const later = await rowsOf("--catalog", incremental, "--state", refreshed.state);
      await using _ = service;
      const script = `CREATE TABLE people (id varchar, _sdc_received_at timestamp, _sdc_table_version bigint);
      INSERT INTO people VALUES ${valuesOf([...before.rows, ...refreshed.rows, ...later.rows], false)};`;
      const folder = await tempDir();
      expect((await idsAfter(engine, script, folder)).length).toBeGreaterThan(idsOf(service).length);
      const left = await idsAfter(engine, `${script}\n${await sqlOf("erased-meltano.sql")}`, folder);
      expect(left.toSorted()).toEqual(idsOf(service));
      const never = `CREATE TABLE people (id varchar, _sdc_received_at timestamp, _sdc_table_version bigint);
      INSERT INTO people VALUES ${valuesOf(before.rows, false)};\n${await sqlOf("erased-meltano.sql")}`;
      expect(await idsAfter(engine, never, folder), "without a full table nobody is").toHaveLength(
        before.rows.length,
      );
    });
  },
);
