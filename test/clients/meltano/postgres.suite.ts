import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { type Postgres, startPostgres } from "./postgres.ts";
import { documented, shareProject } from "./project.ts";

const shared = shareProject({ people: 100, companies: 5 });
let postgres: Postgres;

beforeAll(async () => {
  postgres = await startPostgres();
});

afterAll(async () => {
  await postgres?.stop();
});

/** A schema of its own keeps tests apart. */
const settings = (schema: string): Record<string, string> => ({
  TARGET_POSTGRES_HOST: "127.0.0.1",
  TARGET_POSTGRES_PORT: `${postgres.port}`,
  TARGET_POSTGRES_USER: postgres.user,
  TARGET_POSTGRES_PASSWORD: postgres.password,
  TARGET_POSTGRES_DATABASE: postgres.database,
  TARGET_POSTGRES_DEFAULT_TARGET_SCHEMA: schema,
});

type Row = Readonly<Record<string, unknown>>;

const rowsOf = (schema: string, table: string, where = "true"): Promise<Row[]> =>
  postgres.query<Row>(`select to_jsonb(t) from ${schema}.${table} t where ${where}`);

/** Columns are in lower case, moments without a zone but in UTC. */
function asRow(record: object): Row {
  const entries = Object.entries(record).map(([name, value]) => [name.toLowerCase(), value] as const);
  return comparable(Object.fromEntries(entries));
}

function comparable(row: Row): Row {
  const entries = Object.entries(row)
    .filter(([name]) => !name.startsWith("_sdc_"))
    .map(
      ([name, value]) => [name.toLowerCase(), MOMENTS.has(name.toLowerCase()) ? toMs(value) : value] as const,
    );
  return Object.fromEntries(entries);
}

const MOMENTS = new Set(["discoveredat", "addedat"]);

const toMs = (value: unknown): unknown =>
  typeof value === "string" ? Date.parse(value.endsWith("Z") ? value : `${value}Z`) : value;

async function expectTable(
  schema: string,
  table: string,
  key: string,
  records: readonly object[],
): Promise<void> {
  const rows = await rowsOf(schema, table);
  expect(rows.length, table).toBe(records.length);
  const byKey = new Map(rows.map((row) => [row[key], comparable(row)]));
  for (const record of records) {
    const expected = asRow(record);
    expect(byKey.get(expected[key])).toMatchObject(expected);
  }
}

async function expectService(schema: string, service: Sandbox): Promise<void> {
  await expectTable(schema, "people", "id", service.people());
  await expectTable(schema, "companies", "domain", service.companies());
  await expectTable(schema, "sources", "slug", service.sources());
}

describe("Meltano and target-postgres", () => {
  it("makes the tables what the service holds, and keeps them so", async () => {
    await using service = await startSandbox({ people: 1500, companies: 30 });
    await using mine = await shared.project.copy(service, settings("kept"));
    await mine.sync("target-postgres");
    await expectService("kept", service);
    service.arrive(5);
    service.recheck(25);
    service.advance(86_400_000);
    service.recheck(10);
    await mine.shell(documented("budget"));
    await mine.sync("target-postgres");
    await expectService("kept", service);
  });

  it("reads a table whole as the page says, and tells the target which rows are current", async () => {
    await using service = await startSandbox({ people: 200, companies: 5 });
    await using mine = await shared.project.copy(service, settings("whole"));
    await mine.sync("target-postgres");
    const [gone] = service.people();
    await postgres.query(
      `with x as (insert into whole.people (id) values ('erased at the service')) select to_jsonb(1) where false`,
    );
    const { stderr, stdout } = await mine.shell(documented("full-table"));
    expect(stdout + stderr).toContain("Run completed");
    const deleted = await rowsOf("whole", "people", "_sdc_deleted_at is not null");
    expect(deleted.map(({ id }) => id)).toEqual(["erased at the service"]);
    const current = await rowsOf("whole", "people", "_sdc_deleted_at is null");
    expect(current).toHaveLength(service.people().length);
    expect(current.map(({ id }) => id)).toContain(gone?.id);
    expect(await rowsOf("whole", "companies", "_sdc_deleted_at is not null")).toEqual([]);
  });
});
