import { beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { connector, file } from "../support/cli.ts";
import { catalogFor, configFor } from "../support/configs.ts";

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ people: 500, requestsPerMinute: 0 });
  return async () => await sandbox.close();
});

async function readFrom(state?: unknown): Promise<{ people: number; states: readonly unknown[] }> {
  const catalog = await catalogFor({ people: {}, companies: {} });
  const given = state === undefined ? [] : ["--state", await file("state.json", state)];
  const { messages } = await connector([
    "read",
    "--config",
    await configFor(sandbox),
    "--catalog",
    catalog,
    ...given,
  ]);
  return {
    people: messages.filter(({ record }) => record?.stream === "people").length,
    states: messages.flatMap(({ state: saved }) => saved ?? []),
  };
}

describe("the state of other programs that ran this image", () => {
  it("is taken from tap-airbyte-wrapper, bare and as Meltano keeps it", async () => {
    const { people, states } = await readFrom();
    expect(people).toBe(sandbox.people().length);
    const last = states.at(-1) as { stream: { stream_descriptor: object; stream_state: object } };
    const wrapped = { ...last.stream, airbyte_state: states };
    for (const saved of [wrapped, { singer_state: wrapped }, { completed: { singer_state: wrapped } }]) {
      expect((await readFrom(saved)).people, JSON.stringify(Object.keys(saved))).toBeLessThan(people / 10);
    }
  });
});
