import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/api/clock.ts";
import { showState } from "../../src/commands/state.ts";
import { leftOf } from "../../src/run/progress.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testProcess } from "../support/terminal.ts";

const FEW = { people: 2_000, companies: 0, requestsPerMinute: 0 };

/** What a shell says, with the program as `$1` and the config as `$2`. */
const shell = async (script: string, ...words: readonly string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script, "bash", CONNECTOR, ...words], {
    timeout: 60_000,
  });
  return stdout + stderr;
};

describe("a reader that has had enough", () => {
  it("is no failure of a run of bare records, and one of a run for a platform", async () => {
    const { config } = await sandboxWith(FEW);
    const code = (words: string): Promise<string> =>
      shell(
        `node "$1" read -c "$2" ${words} 2>/dev/null | head -n 1 >/dev/null; echo \${PIPESTATUS[0]}`,
        config,
      );
    expect(await code("--stream people --format jsonl")).toBe("0\n");
    expect(await code("--stream people")).toBe("1\n");
  });

  it("sees no progress between its rows, which may come to the same terminal", async () => {
    const { config } = await sandboxWith(FEW);
    const command = "node '$1' read -c '$2' --stream people --format jsonl | head -n 3";
    const shown = await shell(`env -u CI TERM=xterm script -qec "${command}" /dev/null`, config);
    expect(shown.split("\r\n").filter((line) => line !== "")).toHaveLength(3);
    for (const line of shown.trim().split("\r\n")) expect(line).toMatch(/^\{"id":.*\}$/);
  });
});

it("the progress of a run never says that nothing is left", () => {
  expect(leftOf({ rows: 999, expected_rows: 1_000 }, 500)).toBe("");
  expect(leftOf({ rows: 0, expected_rows: 1_000 }, 100)).toBe("about 10 s left");
});

it("--log-level error says nothing of a run that went well", async () => {
  const { config } = await sandboxWith({ ...FEW, people: 20 });
  const words = ["read", "-c", config, "-o", join(await tempDir(), "out"), "--log-level", "error"];
  expect(await run(CONNECTOR, words, { asProcess: true })).toMatchObject({ code: 0, stdout: "", stderr: "" });
});

describe("words that nobody knows", () => {
  it.each([
    [CONNECTOR, ["read", "--confg", "x"], "Unknown argument: confg. Did you mean --config?\n"],
    [CONNECTOR, ["chek"], "Unknown command: chek. Did you mean check?\n"],
    [CONNECTOR, ["xyzzy"], "Unknown command: xyzzy. See --help\n"],
    [CONNECTOR, ["check", "--nonsense"], "Unknown argument: nonsense. See --help\n"],
    [CONNECTOR, ["read", "extra"], "Unknown argument: extra. See --help\n"],
    [TAP, ["--catlog", "x"], "Unknown argument: catlog. Did you mean --catalog?\n"],
  ])("of %s %j are named once, with the nearest", async (program, words, said) => {
    expect(await run(program, words)).toMatchObject({ code: 2, stdout: "", stderr: said });
  });
});

describe("a config", () => {
  it("named config.json is used where none is named and no variable is set, and that is said", async () => {
    const { config } = await sandboxWith({ ...FEW, people: 20 });
    const folder = await tempDir();
    const check = 'cp "$2" "$3/config.json"; cd "$3"; env -i "$(command -v node)" "$1" check';
    const said = await shell(check, config, folder);
    expect(said).toContain('No config is named: \\"config.json\\" in this folder is used');
    expect(said).toContain("SUCCEEDED");
    const own = check.replace("env -i", "env -i CONTACT_INTELLIGENCE_API_KEY=none");
    expect(await shell(own, config, folder)).toContain("base_url is missing");
  });
});

describe("an address", () => {
  const servers: ReturnType<typeof createServer>[] = [];
  afterEach(() => servers.splice(0).forEach((server) => void server.close()));

  it("with https where http is spoken is named as that", async () => {
    const server = createServer((_, response) => response.end("{}"));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { messages } = await connector([
      "check",
      "-c",
      await file("c.json", { base_url: url, api_key: "k_1.x" }),
    ]);
    expect(JSON.stringify(messages)).toContain("it answers in http, not in https");
  });
});

describe("state show --max-age", () => {
  it("exits with 1 once a stream has not been complete for so long", async () => {
    const { config } = await sandboxWith({ ...FEW, people: 200 });
    const state = join(await tempDir(), "state.json");
    const show = (age: string) => run(CONNECTOR, ["state", "show", "--max-age", age, state]);
    const read = ["read", "-c", config, "--stream", "people", "--format", "jsonl", "--state-file", state];
    expect((await run(CONNECTOR, read)).code).toBe(0);
    expect(await show("26h")).toMatchObject({ code: 0, stderr: "" });
    expect(await show("0m")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Too old: people is complete up to 20/),
    });
    expect(await show("soon")).toMatchObject({ code: 2 });
  });

  it.each([
    [
      "a day that nobody read",
      [
        ["1970-01-02", "2026-01-01", 3],
        ["2026-01-03", "2026-03-01", 4],
      ],
      "2026-01-02",
    ],
    [
      "a missing day",
      [
        ["1970-01-02", "2026-01-01", 3],
        ["2026-01-02", "2026-01-02", null, "missing"],
      ],
      "2026-01-02",
    ],
  ])("counts from %s on", async (_what, days, from) => {
    const people = {
      version: 2,
      discoveredAt: "2026-03-02T01:00:00.000Z",
      asked: "2026-03-03T00:00:00.000Z",
      days,
    };
    const path = await file("state.json", { bookmarks: { people } });
    const ended = await run(CONNECTOR, ["state", "show", "--max-age", "1d", path]);
    expect(ended).toMatchObject({
      code: 1,
      stderr: `Too old: people is complete up to ${from}T00:00:00.000Z\n`,
    });
  });

  it("is content with a stream that has been complete for just so long", async () => {
    const asked = "2026-03-03T00:00:00.000Z";
    const days = [["1970-01-02", "2026-03-01", 3]];
    const people = { version: 2, discoveredAt: "2026-03-02T01:00:00.000Z", asked, days };
    const path = await file("state.json", { bookmarks: { people } });
    const shown = async (age: number): Promise<unknown> => {
      const clock = { ...systemClock, now: () => Date.parse(asked) + age };
      return await showState({ file: path, maxAgeMs: 3_600_000 }, testProcess({ clock }));
    };
    expect([await shown(3_600_000), await shown(3_600_001)]).toEqual([0, 1]);
  });

  it.each([{}, { bookmarks: { sources: { version: 2, full_refresh: null } } }])(
    "is not content with a state of no stream that has dates: %j",
    async (state) => {
      const path = await file("state.json", state);
      expect((await run(CONNECTOR, ["state", "show", "--max-age", "1d", path])).code).toBe(1);
    },
  );
});
