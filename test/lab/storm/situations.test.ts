import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { sandboxOf } from "../../../storm/play.ts";
import { SITUATIONS, type Situation } from "../../../storm/situations.ts";
import { dechunk, PEOPLE, rawGet, STREAM } from "../../unit/sandbox/http.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const LATELY = "2026-03-15";

/** What everybody together asks for: a count, exports, and pages. */
const ASKED: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  [`${PEOPLE}?limit=1`, {}],
  [`${STREAM}?discovered_from=${LATELY}`, {}],
  [`${PEOPLE}?limit=1000&page=1`, { "accept-encoding": "gzip" }],
  [STREAM, { "accept-encoding": "gzip" }],
  [`${PEOPLE}?limit=1000&page=3`, {}],
];

/** A digest of all that came over the wire but dates of answers. */
async function transcript(sandbox: Sandbox): Promise<string> {
  const digest = createHash("sha256");
  for (const [path, headers] of ASKED) {
    const raw = await rawGet(sandbox, path, { ...headers, connection: "close" });
    const { content, complete } = raw.head.includes("chunked")
      ? dechunk(raw.body)
      : { content: raw.body, complete: true };
    const head = raw.head.replace(/^(date|location): .*$/gm, "");
    digest.update(`${head} ${complete} ${raw.ended}`).update(content);
  }
  return digest.digest("hex");
}

function started(situation: Pick<Situation, "sandbox" | "plot">, faults: readonly string[]) {
  const { bytesPerSecond: _, ...options } = sandboxOf(situation, NOW);
  return startSandbox({ ...options, requestsPerMinute: 0, faults });
}

/** What a situation's account shows when nothing goes wrong. */
async function withoutFaults(situation: Pick<Situation, "sandbox" | "plot">) {
  await using sandbox = await started(situation, []);
  return { seen: await transcript(sandbox), people: JSON.stringify(sandbox.people()) };
}

describe("the situations of the storm", async () => {
  const usual = await withoutFaults({});

  it("are at least 24, each with a name of its own and a reason", () => {
    expect(SITUATIONS.length).toBeGreaterThanOrEqual(24);
    expect(new Set(SITUATIONS.map(({ name }) => name)).size).toBe(SITUATIONS.length);
    expect(SITUATIONS.filter(({ why }) => !why.endsWith("."))).toEqual([]);
    expect(SITUATIONS[0]).toMatchObject({ name: "calm", faults: [] });
  });

  it.concurrent.each(SITUATIONS.filter(({ faults }) => faults.length > 0))(
    "happen at the sandbox: $name",
    async (situation) => {
      const { seen, people } = situation.sandbox === undefined ? usual : await withoutFaults(situation);
      await using sandbox = await started(situation, situation.faults);
      const isOther = (await transcript(sandbox)) !== seen;
      expect(sandbox.strikes().every((strikes) => strikes > 0)).toBe(true);
      const isMoved = JSON.stringify(sandbox.people()) !== people;
      expect(isMoved || isOther).toBe(true);
      expect(isMoved).toBe(/drain|arrive/.test(situation.faults.join()));
    },
  );

  it("serve the same when nothing goes wrong", async () => {
    expect(await withoutFaults({})).toEqual(usual);
  });

  it("have people without a date, and another account whose rows are older", async () => {
    const dates = async (situation: Situation | undefined): Promise<readonly (string | null)[]> => {
      await using sandbox = await started(situation ?? {}, []);
      return sandbox.people().map(({ discoveredAt }) => discoveredAt);
    };
    const named = (name: string) => SITUATIONS.find((situation) => situation.name.startsWith(name));
    expect((await dates(named("people without a date"))).filter((date) => date === null)).toHaveLength(40);
    const [newest] = await dates(SITUATIONS[0]);
    const [old] = await dates(named("another account"));
    const days = (Date.parse(newest ?? "") - Date.parse(old ?? "")) / 86_400_000;
    expect(days).toBeCloseTo(5, 1);
  });
});
