import { expect, it } from "vitest";
import { UsageError } from "../../../src/errors.ts";
import { keysQuery } from "../../../src/reconcile/sql.ts";

it("queries for a table's keys are those of golden/keys-queries.txt", async () => {
  const lines = ["duckdb", "postgres", "bigquery", "snowflake"].map(
    (dialect) => `# ${dialect}\n${keysQuery(dialect, "crm.people", "id", "discoveredAt")}`,
  );
  await expect(lines.join("\n")).toMatchFileSnapshot("../../golden/keys-queries.txt");
});

it("there are none for another dialect", () => {
  expect(() => keysQuery("mysql", "t", "k", "c")).toThrow(
    '--sql must be one of duckdb, postgres, bigquery, snowflake, not "mysql"',
  );
  expect(() => keysQuery("", "t", "k", "c")).toThrow(UsageError);
});
