import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type AirbyteMessage, recordsOf as dataOf, linesOf, statesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { recordsOf, tap } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

const PROOF = { proof_stream: true };
const ACCOUNT = { requestsPerMinute: 0, people: 120, companies: 8 } as const;
/** Too many for one window. */
const LARGE = { requestsPerMinute: 0, people: 50_500, companies: 3, days: 900 } as const;

type Row = Record<string, unknown>;
const sum = (rows: readonly Row[], name: string): number =>
  rows.reduce((all, row) => all + Number(row[name]), 0);
const windowsIn = (messages: readonly AirbyteMessage[]): readonly Row[] => dataOf(messages, "sync_windows");

/** The state that a platform keeps of messages. */
const stateIn = (stdout: string, until = (_line: string): boolean => true): Promise<string> =>
  file(
    "state.json",
    linesOf(stdout)
      .filter((line) => line.includes('"STATE"') && until(line))
      .join("\n"),
  );

describe("sync_windows", () => {
  it("is there only if the config asks for it, and is incremental", async () => {
    const { sandbox, config } = await sandboxWith(ACCOUNT, PROOF);
    const { messages } = await connector(["discover", "--config", config]);
    const { streams = [] } = messages.at(-1)?.catalog ?? {};
    expect(streams.at(-1)).toMatchObject({
      ...{ name: "sync_windows", supported_sync_modes: ["incremental"] },
      ...{ default_cursor_field: ["run_started_at"], source_defined_primary_key: [["id"]] },
    });
    const { code, stdout } = await run(CONNECTOR, [
      "read",
      "--config",
      await file("c.json", { base_url: sandbox.url, api_key: sandbox.key }),
      "--stream",
      "sync_windows",
    ]);
    expect([code, stdout]).toEqual([1, expect.stringContaining("only when proof_stream is set")]);
  });

  it("says what was counted, shown, passed on and held back in each window, and holds no value of a row", async () => {
    const suppress_file = await file("suppressed.txt", "person-held\n");
    const { sandbox, config } = await sandboxWith(ACCOUNT, { ...PROOF, suppress_file });
    const [held, ...others] = sandbox.people();
    await file("x", "");
    const list = await file("held.txt", `${held?.id}\n${others[5]?.id}`);
    const args = [
      "read",
      "--config",
      await file("c.json", { ...JSON.parse(await readFile(config, "utf8")), suppress_file: list }),
    ];
    const { code, messages, stdout } = await connector(args);
    const rows = windowsIn(messages);
    expect(code, stdout.slice(-1500)).toBe(0);
    const people = rows.filter(({ stream }) => stream === "people");
    expect([
      sum(people, "counted_before"),
      sum(people, "shown"),
      sum(people, "emitted"),
      sum(people, "suppressed"),
    ]).toEqual([123, 123, 121, 2]);
    expect(rows.map(({ stream }) => stream)).toEqual(["people", "companies", "sources"]);
    for (const row of rows) {
      expect(row).toMatchObject({ verdict: "proven", passes: 1 });
      expect(Number(row["requests"])).toBeGreaterThan(0);
    }
    const text = JSON.stringify(rows);
    for (const { id, email } of sandbox.people())
      for (const secret of [id, email]) if (secret !== null) expect(text).not.toContain(secret);

    const again = await connector([...args, "--state", await stateIn(stdout)]);
    const news = windowsIn(again.messages);
    expect(news.length).toBeGreaterThan(0);
    const ids = [...rows, ...news].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("tells every day of a large account, and brings first what a run left that was cut before", async () => {
    const { sandbox, config } = await sandboxWith(LARGE, { ...PROOF, num_workers: 2 });
    const args = ["read", "--config", config];
    const first = await connector(args);
    const rows = windowsIn(first.messages);
    const closed = rows.filter(({ kind, stream }) => kind === "closed" && stream === "people");
    expect(closed.length).toBeGreaterThan(1);
    expect(
      sum(
        rows.filter(({ stream }) => stream === "people"),
        "emitted",
      ),
    ).toBe(sandbox.people().length);
    const days = closed
      .map(({ first_day, last_day }) => [String(first_day), String(last_day)] as const)
      .toSorted();
    for (const [nth, [from]] of days.entries()) {
      const before = days[nth - 1]?.[1];
      if (before !== undefined)
        expect(new Date(Date.parse(before) + 86_400_000).toISOString().slice(0, 10)).toBe(from);
    }
    const order = first.messages.flatMap(
      ({ record, state }) => record?.stream ?? state?.stream?.stream_descriptor.name ?? [],
    );
    expect(order.indexOf("sync_windows")).toBeGreaterThan(order.lastIndexOf("people"));

    const cut = await stateIn(first.stdout, (line) => !line.includes('{"name":"sync_windows"}'));
    const second = await connector([...args, "--state", cut]);
    expect(windowsIn(second.messages).slice(0, rows.length)).toEqual(rows);
    expect(windowsIn(second.messages).length).toBeGreaterThan(rows.length);
    const held = statesOf(first.messages, "people").map((state) => (state["sync_windows"] as Row[]).length);
    expect(held).toEqual(held.toSorted((a, b) => a - b));
  });

  it("brings what stood in the states of runs that were cut before they were merged", async () => {
    const { config } = await sandboxWith(ACCOUNT, PROOF);
    const args = ["read", "--config", config, "--stream", "people", "--stream", "sync_windows"];
    const first = await connector(args);
    const cut = await stateIn(first.stdout, (line) => !line.includes('{"name":"sync_windows"}'));
    const merge = async (...states: string[]) => await run(CONNECTOR, ["state", "merge", ...states]);
    const merged = await file("merged.json", (await merge(cut, cut)).stdout);
    const second = await connector([...args, "--state", merged]);
    expect(windowsIn(second.messages).slice(0, 1)).toEqual(windowsIn(first.messages));
    const whole = await stateIn(first.stdout);
    const after = await file("after.json", (await merge(whole, whole)).stdout);
    const third = await connector([...args, "--state", after]);
    const [{ run_started_at: began } = {}] = windowsIn(first.messages);
    expect(windowsIn(third.messages).filter((row) => row["run_started_at"] === began)).toEqual([]);
  });

  it("is the same in Singer's language and in files, each record once over several runs", async () => {
    const { sandbox, config } = await sandboxWith(ACCOUNT, PROOF);
    const folder = join(await tempDir(), "rows");
    const inFiles = async (): Promise<Row[]> => {
      expect((await run(CONNECTOR, ["read", "--config", config, "--output", folder])).code).toBe(0);
      const names = await readdir(join(folder, "sync_windows"));
      const texts = await Promise.all(
        names.map((name) => readFile(join(folder, "sync_windows", name), "utf8")),
      );
      return texts.flatMap((text) => linesOf(text).map((line) => JSON.parse(line) as Row));
    };
    expect(
      sum(
        (await inFiles()).filter(({ stream }) => stream === "people"),
        "emitted",
      ),
    ).toBe(123);
    sandbox.advance(3_600_000);
    sandbox.arrive(2);
    const rows = await inFiles();
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    expect(new Set(rows.map(({ run_started_at }) => run_started_at)).size).toBe(2);

    const { messages } = await tap(["--config", config]);
    const records = recordsOf(messages, "sync_windows").map(({ record }) => record as Row);
    const people = records.filter(({ stream }) => stream === "people");
    expect([sum(people, "emitted"), records.length - people.length]).toEqual([125, 2]);
    const state = await file("singer.json", messages.findLast(({ type }) => type === "STATE")?.value ?? {});
    const later = await tap(["--config", config, "--state", state]);
    const starts = recordsOf(later.messages, "sync_windows").map(({ record }) =>
      String(record?.["run_started_at"]),
    );
    expect(starts.filter((start) => start <= String(records[0]?.["run_started_at"]))).toEqual([]);
  });

  it("says how often a window was read", async () => {
    const { config, sandbox } = await sandboxWith(ACCOUNT, PROOF);
    sandbox.fault("reset:after=10:path=/people/stream:times=1");
    const { messages } = await connector(["read", "--config", config]);
    expect(windowsIn(messages)[0]).toMatchObject({
      stream: "people",
      passes: 2,
      emitted: 123,
      verdict: "proven",
    });
  });
});
