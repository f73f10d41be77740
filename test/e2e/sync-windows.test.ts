import { expect, it } from "vitest";
import { linesOf, recordsOf } from "../support/airbyte-messages.ts";
import { connector, file } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";

it("sync_windows says once of each window what was counted and shown, though a run was cut before it", async () => {
  const { config } = await sandboxWith(
    { requestsPerMinute: 0, people: 120, companies: 8 },
    { proof_stream: true },
  );
  const first = await connector(["read", "--config", config]);
  const rows = recordsOf(first.messages, "sync_windows");
  expect(rows).toMatchObject([
    { stream: "people", counted_before: 123, shown: 123, emitted: 123, passes: 1, verdict: "proven" },
    { stream: "companies", verdict: "proven" },
    { stream: "sources", verdict: "proven" },
  ]);
  const states = linesOf(first.stdout).filter((line) => line.includes('"STATE"'));
  const cut = states.filter((line) => !line.includes('{"name":"sync_windows"}'));
  const idsAfter = async (lines: readonly string[]): Promise<readonly unknown[]> => {
    const state = await file("state.json", lines.join("\n"));
    const { messages } = await connector(["read", "--config", config, "--state", state]);
    return recordsOf(messages, "sync_windows").map(({ id }) => id);
  };
  const ids = rows.map(({ id }) => id);
  expect((await idsAfter(cut)).slice(0, ids.length)).toEqual(ids);
  expect((await idsAfter(states)).filter((id) => ids.includes(id as never))).toEqual([]);
});
