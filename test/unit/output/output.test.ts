import { existsSync, writeFileSync } from "node:fs";
import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { RENEW_MS } from "../../../src/output/files/lock.ts";
import { runToEnd } from "../../../src/output/output.ts";
import { openSink } from "../../../src/output/sink.ts";
import { airbyte } from "../../../src/protocol/airbyte.ts";
import { Mask } from "../../../src/protocol/mask.ts";
import { checkpoint } from "../../support/events.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { testProcess } from "../../support/terminal.ts";

describe("openSink()", () => {
  it("only reads what --state names, links included, and takes no lock", async () => {
    const folder = await tempDir();
    const path = join(folder, "state.json");
    writeFileSync(join(folder, "real.json"), '{"bookmarks":{"people":{"discoveredAt":"1"}}}');
    await symlink(join(folder, "real.json"), path);
    const sink = await openSink({ state: path }, () => "", new Mask(), testProcess());
    expect([sink.place, sink.saved.streams.get("people")]).toEqual([null, { discoveredAt: "1" }]);
    expect(sink.lock).toBeUndefined();
    expect((await readdir(folder)).sort()).toEqual(["real.json", "state.json"]);
  });

  it("saves a state in its file only after all before it has left", async () => {
    const stateFile = join(await tempDir(), "state.json");
    const saved: boolean[] = [];
    const write = (done: () => void): void => {
      saved.push(existsSync(stateFile));
      done();
    };
    const stdout = new Writable({ write: (_chunk, _encoding, done) => void setTimeout(write, 50, done) });
    const sink = await openSink({ stateFile }, () => "a row\n", new Mask(), testProcess({ stdout }));
    await sink.emit(checkpoint("people", { version: 4, full_refresh: null }));
    expect([...saved, existsSync(stateFile)]).toEqual([false, true]);
    await sink.release();
  });
});

it("a run reports a lock that it watches, in its language and in its log", async () => {
  const path = join(await tempDir(), "state.json");
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
    const format = logs ? () => "" : airbyte({ now: () => 0 });
    await runToEnd({ audience: logs ? "person" : "airbyte", format }, runtime, async (open) => {
      await open({ stateFile: path });
      return true;
    });
    return String((logs ? stderr : stdout).read());
  };
  for (const logs of [true, false]) expect(await said(logs)).toContain("Found the lock");
});
