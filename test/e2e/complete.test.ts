import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import type { Clock } from "../../src/base/clock.ts";
import {
  type AirbyteMessage,
  errorsOf,
  idsOf,
  linesOf,
  recordsOf,
  statesOf,
  statusesOf,
} from "../support/airbyte-messages.ts";
import { connector, file } from "../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { listOf, serve } from "../support/serve.ts";

const stateLines = (stdout: string): string =>
  linesOf(stdout)
    .filter((line) => line.startsWith('{"type":"STATE"'))
    .join("\n");

type Asked = {
  readonly settings?: object;
  readonly streams?: Parameters<typeof catalogFor>[0];
  readonly state?: string;
};

async function read(
  sandbox: Sandbox,
  { settings, streams = { people: {} }, state }: Asked = {},
  clock?: Clock,
) {
  const given = state === undefined ? [] : ["--state", await file("state.txt", state)];
  const [config, catalog] = [await configFor(sandbox, settings), await catalogFor(streams)];
  const args = ["read", "--config", config, "--catalog", catalog, ...given];
  const ended = await connector(args, clock && { clock });
  expect(ended.stderr).toBe("");
  return ended;
}

const DATE_TIMES = { start_date: "2024-01-01T00:00:00Z", end_date: "2024-12-31T10:00:00Z" };
const SMALL: SandboxOptions = { people: 300, undated: 3, companies: 12, sources: 4 };

describe("read", () => {
  it.each([
    ["start_date", { start_date: "2025-06-01" }, (at: string) => at >= "2025-06-01"],
    ["end_date", { end_date: "2024-12-31" }, (at: string) => at !== "" && at < "2025-01-01"],
    ["both, as date-times", DATE_TIMES, (at: string) => at.startsWith("2024")],
  ])("obeys %s", async (_name, settings, wanted) => {
    await using sandbox = await startSandbox({ ...SMALL, now: "2026-01-10T12:00:00Z" });
    const { code, messages } = await read(sandbox, { settings });
    expect(code).toBe(0);
    const expected = sandbox.people().filter(({ discoveredAt }) => wanted(discoveredAt ?? ""));
    expect(expected.length).toBeGreaterThan(0);
    expect(idsOf(messages).toSorted()).toEqual(expected.map(({ id }) => id).toSorted());
    const last = String(statesOf(messages, "people").at(-1)?.["discoveredAt"]);
    const dates = expected.map(({ discoveredAt }) => discoveredAt).toSorted();
    if ("end_date" in settings) expect(last).toBe(dates.at(-1));
  });

  it("obeys source_slug and is_user, and refuses a state of other filters before it asks for rows", async () => {
    await using sandbox = await startSandbox(SMALL);
    const slug = sandbox.sources()[0]?.slug ?? "";
    const users = await read(sandbox, { settings: { source_slug: slug, is_user: true } });
    const expected = sandbox.people().filter(({ sources }) => sources.includes(slug));
    expect(idsOf(users.messages).toSorted()).toEqual(expected.map(({ id }) => id).toSorted());
    const all = await read(sandbox, { state: stateLines(users.stdout) });
    expect([all.code, recordsOf(all.messages, "people")]).toEqual([1, []]);
    expect(errorsOf(all.messages)[0]?.message).toMatch(/its filters were source_slug .* Reset the stream/);
  });

  it("reads nothing for a full refresh that is done under the same ids", async () => {
    await using sandbox = await startSandbox(SMALL);
    const ids = { sync_mode: "full_refresh", generation_id: 3, sync_id: 7 };
    const streams = { people: ids, companies: ids, sources: ids };
    const first = await read(sandbox, { streams });
    expect(recordsOf(first.messages, "people")).toHaveLength(303);
    const again = await read(sandbox, { streams, state: stateLines(first.stdout) });
    expect(again.code).toBe(0);
    expect(again.messages.filter(({ type }) => type === "RECORD")).toHaveLength(0);
    for (const name of Object.keys(streams)) {
      expect(statesOf(again.messages, name)).toHaveLength(1);
      expect(statusesOf(again.messages, name).at(-1)).toBe("COMPLETE");
    }
  });

  it("reads two streams of one name in two namespaces, each from its own state", async () => {
    const { config } = await sandboxWith(SMALL);
    const streams = ["eu", "us"].map((namespace) => ({
      ...{ stream: { name: "people", namespace }, sync_mode: "incremental", destination_sync_mode: "append" },
    }));
    const catalog = await file("catalog.json", { streams });
    const args = ["read", "--config", config, "--catalog", catalog];
    const first = await connector(args);
    expect(first.code).toBe(0);
    const countsOf = ({ messages }: { messages: readonly AirbyteMessage[] }): number[] =>
      ["eu", "us"].map(
        (place) =>
          messages.filter(({ record }) => record?.namespace === place && record.stream === "people").length,
      );
    expect(countsOf(first)).toEqual([303, 303]);
    const states = first.messages.flatMap(({ state }) => state ?? []);
    const ofUs = states.findLast(({ stream }) => stream.stream_descriptor.namespace === "us");
    const again = await connector([...args, "--state", await file("state.json", [ofUs])]);
    const [eu, us] = countsOf(again);
    expect(eu).toBe(303);
    expect(us).toBeLessThan(20);
  });

  it("lets the other streams finish when some fail, and names what failed last", async () => {
    const faults = ["status=403:code=SOURCE_NOT_ALLOWED:path=companies:times=always"];
    await using sandbox = await startSandbox({ ...SMALL, faults });
    const streams = { nobody: {}, companies: {}, people: { sync_mode: "INVALID" }, sources: {} };
    const { code, messages } = await read(sandbox, { streams });
    expect(code).toBe(1);
    expect(statusesOf(messages, "sources").at(-1)).toBe("COMPLETE");
    for (const name of ["nobody", "companies", "people"])
      expect(statusesOf(messages, name).at(-1)).toBe("INCOMPLETE");
    const errors = new Map(errorsOf(messages).map((error) => [error.stream_descriptor?.name, error]));
    expect([...errors.keys()].toSorted()).toEqual(["companies", "nobody", "people"]);
    for (const { failure_type } of errors.values()) expect(failure_type).toBe("config_error");
    expect(messages.slice(-3).every(({ trace }) => trace?.error !== undefined)).toBe(true);
    expect(errors.get("nobody")?.message).toMatch(/no such stream.*Discover again/);
  });

  it("never moves state over a window that no attempt reads whole", async () => {
    const faults = ["stream-failed:path=people/stream:times=always", "page-repeats"];
    await using sandbox = await startSandbox({ ...SMALL, people: 6_000, days: 2, faults });
    const start_date = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const { code, messages } = await read(sandbox, { settings: { start_date } }, hurriedClock());
    expect(code).toBe(1);
    expect(statusesOf(messages, "people").at(-1)).toBe("INCOMPLETE");
    expect(statesOf(messages, "people").filter(({ discoveredAt }) => discoveredAt !== null)).toEqual([]);
    expect(errorsOf(messages)).toMatchObject([{ stream_descriptor: { name: "people" } }]);
  });

  it("says of each day that is incomplete what is counted and what is sent, also in later runs", async () => {
    const omitted = { days: 30, faults: ["omit=40:lists=too:times=always"] };
    await using sandbox = await startSandbox({ ...SMALL, people: 600, undated: 0, ...omitted });
    const settings = { end_date: new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10) };
    let state: string | undefined;
    for (const _ of ["first run", "second run"]) {
      const given = { settings, ...(state !== undefined && { state }) };
      const { code, messages, stdout } = await read(sandbox, given, hurriedClock());
      state = stateLines(stdout);
      const { message = "" } = errorsOf(messages)[0] ?? {};
      const [, days, listed = "", more, remedy] =
        /^(\d+) days of people are incomplete\. (.*); and (\d+) more\. (All other.*)$/.exec(message) ?? [];
      expect([code, Number(more)]).toEqual([1, Number(days) - 10]);
      expect(remedy).toMatch(
        /^All other days are saved\. Run again\. .*owner\. Last resort.*ignore_missing_days/,
      );
      for (const day of listed.split("; ")) {
        const numbers = /^\d{4}-\d\d-\d\d: the service counts (\d+) rows? and sends (\d+) \(\d+ export/.exec(
          day,
        );
        expect(Number(numbers?.[1]), day).toBeGreaterThan(Number(numbers?.[2]));
      }
    }
  });

  it("delivers a row again that a damaged gzip changed on its way, whatever else the damage made", async () => {
    const discoveredAt = new Date().toISOString();
    // So many that the first of them have left before the damage is known.
    const people = Array.from({ length: 4_000 }, (_, id) => ({
      id: `${id}`,
      firstName: "Ann",
      discoveredAt,
    }));
    const sent = gzipSync(people.map((person) => `${JSON.stringify(person)}\n`).join(""), { level: 0 });
    const damaged = Buffer.from(sent);
    damaged.write("X", damaged.indexOf("Ann"), "latin1");
    damaged.write("\xff", damaged.indexOf("Ann", damaged.length / 2), "latin1");
    const bodies = [damaged];
    const { url } = await serve(({ url: path = "" }, response) => {
      if (path.includes("/people/stream"))
        response.writeHead(200, { "content-encoding": "gzip" }).end(bodies.pop() ?? sent);
      else response.end(listOf(path.includes("/people") ? people.length : 0));
    });
    const config = await file("config.json", { base_url: url, api_key: "key", start_date: discoveredAt });
    const args = ["read", "--config", config, "--catalog", await catalogFor({ people: {} })];
    const { code, messages } = await connector(args, { clock: hurriedClock() });
    const rows = recordsOf(messages, "people");
    const names = new Map(rows.map(({ id, firstName }) => [id, firstName]));
    expect([code, rows[0]?.["firstName"]]).toEqual([0, "Xnn"]);
    expect(names).toEqual(new Map(people.map(({ id, firstName }) => [id, firstName])));
  });
});
