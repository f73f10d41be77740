import { describe, expect, it } from "vitest";
import { type AirbyteMessage, idsOf } from "../support/airbyte-messages.ts";
import { connector, file } from "../support/cli.ts";
import { catalogFor, sandboxWith } from "../support/configs.ts";

async function readFrom(config: string, state: unknown = ""): Promise<readonly AirbyteMessage[]> {
  const catalog = await catalogFor({ people: {}, companies: {} });
  const args = ["--catalog", catalog, "--state", await file("state.json", state)];
  return (await connector(["read", "--config", config, ...args])).messages;
}

describe("the state of other programs that ran this image", () => {
  it("is taken from tap-airbyte-wrapper, bare and as Meltano keeps it", async () => {
    const { sandbox, config } = await sandboxWith({ people: 500, requestsPerMinute: 0 });
    const messages = await readFrom(config);
    const people = sandbox.people().length;
    expect(idsOf(messages)).toHaveLength(people);
    const states = messages.flatMap(({ state }) => state ?? []);
    const wrapped = { ...states.at(-1)?.stream, airbyte_state: states };
    for (const saved of [wrapped, { singer_state: wrapped }, { completed: { singer_state: wrapped } }]) {
      const again = idsOf(await readFrom(config, saved));
      expect(again.length, JSON.stringify(Object.keys(saved))).toBeLessThan(people / 10);
    }
  });
});
