import { writeFileSync } from "node:fs";
import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { RENEW_MS } from "../../../src/files/lock.ts";
import { airbyte } from "../../../src/protocol/airbyte.ts";
import { Mask } from "../../../src/protocol/mask.ts";
import { runToEnd } from "../../../src/run/output.ts";
import { openSink } from "../../../src/run/sink.ts";
import type { Event } from "../../../src/streams/event.ts";
import { checkpoint, close, open, records } from "../../support/events.ts";
import { tempDir, textsIn } from "../../support/temp-dir.ts";
import { Terminal, testProcess } from "../../support/terminal.ts";

describe("openSink()", () => {
  const stats = { noteSaved: () => undefined, notePublished: () => undefined };

  it.each([
    ["a state file", (folder: string) => ({ kind: "state file" as const, path: join(folder, "state.json") })],
    ["a folder", (folder: string) => ({ kind: "folder" as const, path: folder, gzip: false })],
  ])("knows that another run has taken %s over", async (_what, destination) => {
    const folder = await tempDir();
    const runtime = { ...testProcess(), stats };
    const sink = await openSink(destination(folder), () => "", new Mask(), runtime);
    expect(sink.place).toBe(join(folder, "state.json"));
    await sink.check();
    writeFileSync(join(folder, "state.json.lock"), '{"token":"another"}\n');
    await expect(sink.check()).rejects.toThrow("another run took it over");
    await sink.release();
  });

  it("only reads what --state names, links included, and takes no lock", async () => {
    const folder = await tempDir();
    const path = join(folder, "state.json");
    writeFileSync(join(folder, "real.json"), '{"bookmarks":{"people":{"discoveredAt":"1"}}}');
    await symlink(join(folder, "real.json"), path);
    const to = { kind: "stdout", state: path } as const;
    const sink = await openSink(to, () => "", new Mask(), { ...testProcess(), stats });
    expect([sink.place, sink.saved.streams.get("people")]).toEqual([null, { discoveredAt: "1" }]);
    await sink.check();
    expect((await readdir(folder)).sort()).toEqual(["real.json", "state.json"]);
  });

  it("begins a folder with the state that --state names, but for the files of another folder", async () => {
    const [folder, state] = [join(await tempDir(), "out"), join(await tempDir(), "state.json")];
    const output = { numbers: { people: 7 }, pending: [] };
    writeFileSync(state, JSON.stringify({ bookmarks: { people: { discoveredAt: "1" } }, kept: 1, output }));
    const runtime = { ...testProcess(), stats };
    const sink = await openSink(
      { kind: "folder", path: folder, gzip: false, state },
      () => "",
      new Mask(),
      runtime,
    );
    for (const event of [
      open("people"),
      records("people", { id: 1 }),
      checkpoint("people", { discoveredAt: "2" }),
      close("people"),
    ])
      await sink.emit(event);
    await sink.release();
    expect(await readdir(join(folder, "people"))).toEqual([expect.stringMatching(/-000000001\.jsonl$/)]);
    const written = JSON.parse((await textsIn(folder))["state.json"] ?? "");
    const numbers = { people: 1 };
    expect(written).toMatchObject({
      kept: 1,
      output: { numbers },
      bookmarks: { people: { discoveredAt: "2" } },
    });
  });
});

/** Lets a terminal show its cursor again. */
const SHOWN = "\u001b[?25h";

describe("runToEnd()", () => {
  const base = "http://127.0.0.1:1";
  const config = parseConfig({ base_url: base, api_key: "x_01234567_0123456789abcdef0123456789abcdef" }, {});

  it("says what ends a run before its output is open in the run's language, and shows no secret", async () => {
    const [stdout, stderr] = [new Terminal(), new Terminal()];
    const runtime = testProcess({ stdout, stderr });
    const say = airbyte({ now: () => 0 });
    const missing = join(await tempDir(), config.apiKey, "state.json");
    const code = await runToEnd({ name: "x", logs: false, say }, runtime, async (open) => {
      await open({ kind: "state file", path: missing }, config);
      return true;
    });
    expect(code).toBe(1);
    expect(stdout.text).toContain('"failure_type":"config_error"');
    expect(stdout.text).toContain("there is no folder");
    expect(stdout.text + stderr.text).not.toContain(config.apiKey);
  });

  it.each([
    [
      false,
      "saved people up to 2026-01-02T00:00:00Z in the last STATE message on stdout. Run again to continue",
    ],
    [true, "no state is saved. Add --state-file FILE or --output DIR to save it"],
  ])(
    "says at the end of a run that did not end well what is saved, without states: %s",
    async (bare, said) => {
      const stderr = new Terminal();
      const runtime = testProcess({ stdout: new PassThrough(), stderr, environment: { CI: "1" } });
      const say = airbyte({ now: () => 0 });
      const code = await runToEnd({ name: "x", logs: false, bare, say }, runtime, async (open_) => {
        const output = await open_({ kind: "stdout" }, config);
        const state = { version: 2, discoveredAt: "2026-01-02T00:00:00Z" };
        for (const event of [open("people"), records("people", { id: 1 }), checkpoint("people", state)])
          await output.emit(event);
        await output.emit(close("people", false));
        return false;
      });
      expect(code).toBe(1);
      expect(stderr.text).toContain(`people: incomplete, 1 row`);
      expect(stderr.text).toContain(`Run incomplete: ${said}\n`);
    },
  );

  it("tells of a lock that it watches, in the run's language and in its log", async () => {
    const path = join(await tempDir(), "state.json");
    writeFileSync(`${path}.lock`, '{"token":"of another machine"}\n');
    let time = 0;
    const sleep = async (ms: number): Promise<void> => {
      if (ms === RENEW_MS) await new Promise(() => undefined);
      time += ms;
    };
    const clock = { now: () => 0, monotonic: () => time, sleep };
    const said = async (logs: boolean): Promise<string> => {
      writeFileSync(`${path}.lock`, '{"token":"of another machine"}\n');
      const [stdout, stderr] = [new PassThrough(), new PassThrough()];
      const runtime = testProcess({ clock, stdout, stderr });
      const say = logs ? () => "" : airbyte({ now: () => 0 });
      await runToEnd({ name: "x", logs, say }, runtime, async (open) => {
        await open({ kind: "state file", path });
        return true;
      });
      return String((logs ? stderr : stdout).read());
    };
    for (const logs of [true, false]) expect(await said(logs)).toContain("Found the lock");
  });

  it("says how each stream ended, what is new of it, and then how the run ended", async () => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const runtime = testProcess({ stdout, stderr });
    const none = { windows: 0, passes: null, missing_days: [], recheck: [] };
    const report = { ...none, time_limit_reached: true, saved_up_to: "2026-01-02T00:00:00Z" };
    const ofStream = (text: string): Event =>
      ({ kind: "log", level: "info", text, endOf: "people" }) as Event;
    const code = await runToEnd({ name: "x", logs: true, logLevel: "info" }, runtime, async (open_) => {
      const output = await open_({ kind: "stdout" }, config);
      const events: readonly Event[] = [
        ...[open("people"), records("people", { id: 1 }), ofStream("first end"), ofStream("second end")],
        ...[{ ...close("people"), report } as Event, open("companies"), close("companies", false)],
      ];
      for (const event of events) await output.emit(event);
      return false;
    });
    const lines = String(stderr.read()).trimEnd().split("\n");
    const said = lines.map((line): string => JSON.parse(line).message);
    expect([code, said.map((text) => text.replace(/\d\.\d s/g, "0.0 s"))]).toEqual([
      1,
      [
        'Stream "people": started',
        'Stream "people": complete, 1 row, 0 requests, 0.0 s; first end; second end',
        "Time limit reached: 1 row, saved up to 2026-01-02. Run again to continue.",
        'Stream "companies": started',
        'Stream "companies": incomplete, a part of it could not be read',
        'Stream "companies": incomplete, 0 rows, 0 requests, 0.0 s',
        "Run incomplete: 1 row of 2 streams, 0 requests, 0.0 s; nothing new was ready to be saved. Run again to start where this run did",
        'Stream "companies": incomplete, a part of it could not be read',
      ],
    ]);
  });

  it("draws what comes as it comes, and takes it off the terminal before it says how the run ended", async () => {
    // What draws asks for it itself.
    vi.stubEnv("CI", undefined);
    const stderr = new Terminal();
    let now = 0;
    const clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
    const runtime = testProcess({ stdout: new PassThrough(), stderr, clock });
    const seen: string[] = [];
    const to = { kind: "folder", path: join(await tempDir(), "out"), gzip: false } as const;
    await runToEnd({ name: "x", logs: false }, runtime, async (open_) => {
      const output = await open_(to, config);
      for (const event of [open("people"), records("people", { id: 1 }), records("people", { id: 2 })]) {
        now += 1_000;
        stderr.text = "";
        await output.emit(event);
        seen.push(stderr.text);
      }
      await output.emit(close("people"));
      stderr.text = "";
      return true;
    });
    vi.unstubAllEnvs();
    expect(seen[0]).toContain("people: 0 rows");
    expect(seen[1]).toContain("people: 1 row");
    expect(seen[2]).toContain("people: 2 rows");
    // What is drawn at the end: the cursor is back before the first line of the summary.
    const [before = "", after = ""] = stderr.text.split("people: complete");
    expect([before.includes(SHOWN), after.includes(SHOWN)]).toEqual([true, false]);
  });

  it.each([
    [undefined, 0],
    [false, 0],
    [true, 4],
  ])("says the metrics of a stream before its end, where they are asked for: %s", async (metrics, count) => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const options = { name: "x", logs: true, ...(metrics !== undefined && { metrics }) };
    await runToEnd(options, testProcess({ stdout, stderr }), async (open_) => {
      const output = await open_({ kind: "stdout" }, config);
      for (const event of [open("people"), records("people", { id: 1 }), close("people")])
        await output.emit(event);
      return true;
    });
    const lines = String(stderr.read()).trimEnd().split("\n");
    const metric = lines.map((line) => line.includes("METRIC"));
    expect([
      metric.filter(Boolean).length,
      metric.lastIndexOf(true) < lines.findIndex((line) => line.includes("complete, 1 row")),
    ]).toEqual([count, true]);
  });

  it.each([
    ["a terminal", true, {}, undefined, ["WARNING"]],
    ["a file", false, {}, undefined, ["INFO", "WARNING"]],
    ["a terminal", true, { LOGLEVEL: "info" }, undefined, ["INFO", "WARNING"]],
    ["a file", false, { LOGLEVEL: "warning" }, undefined, ["WARNING"]],
    ["a file", false, { LOGLEVEL: "warning" }, "info", ["INFO", "WARNING"]],
    ["a terminal", true, { LOGLEVEL: "info" }, "error", []],
  ] as const)(
    "logs to %s (%s) with the environment %j and the option %s what is at least so grave: %j",
    async (_, isTTY, environment, logLevel, levels) => {
      const [terminal, file] = [new Terminal(), new PassThrough()];
      const stderr = isTTY ? terminal : file;
      const runtime = testProcess({ stdout: new PassThrough(), stderr, environment });
      await runToEnd({ name: "x", logs: true, logLevel }, runtime, async (open_) => {
        const output = await open_({ kind: "stdout" }, config);
        for (const level of ["info", "warn"] as const)
          await output.emit({ kind: "log", level, text: `of ${level === "info" ? "INFO" : "WARNING"}` });
        return true;
      });
      const lines = `${terminal.text}${file.read() ?? ""}`.split("\n");
      expect(lines.flatMap((line) => /of (INFO|WARNING)/.exec(line)?.[1] ?? [])).toEqual(levels);
    },
  );

  it("begins no run whose summary could not be written", async () => {
    const summary = join(await tempDir(), "none", "summary.json");
    let begun = 0;
    const ended = runToEnd({ name: "x", logs: true, summary }, testProcess(), async () => {
      begun += 1;
      return true;
    });
    await expect(ended).rejects.toThrow("Cannot write the summary");
    expect(begun).toBe(0);
  });
});
