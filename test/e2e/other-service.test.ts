import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { hurriedClock, runInProcess } from "../support/in-process.ts";
import { tempDir } from "../support/temp-dir.ts";

const SMALL: SandboxOptions = { people: 40, companies: 3, sources: 2 };

/** Runs the connector against a sandbox, with a state file or a folder of its own. */
async function read(sandbox: Sandbox, ...words: readonly string[]) {
  const environment = {
    CONTACT_INTELLIGENCE_BASE_URL: sandbox.url,
    CONTACT_INTELLIGENCE_API_KEY: sandbox.key,
    CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE: "6000",
  };
  return await runInProcess("connector", ["read", ...words], environment, hurriedClock());
}

describe("read with the state of another service", () => {
  it.each([
    ["of the streams that the key can read", []],
    ["of one stream", ["--stream", "people"]],
  ])("asks nothing, and names both ways out: %s", async (_, streams) => {
    const folder = await tempDir();
    const to = [...streams, "--state-file", join(folder, "state.json")];
    await using staging = await startSandbox(SMALL);
    await using production = await startSandbox(SMALL);
    expect((await read(staging, ...to)).code).toBe(0);
    const before = await readFile(join(folder, "state.json"), "utf8");
    const { code, stdout } = await read(production, ...to);
    expect(code).toBe(1);
    expect(stdout).toContain("was made with another base_url");
    expect(stdout).toMatch(/Reset the stream.*remove \\"service\\" from the state/);
    expect(stdout).not.toContain('"RECORD"');
    expect(production.requests).toEqual([]);
    expect(await readFile(join(folder, "state.json"), "utf8")).toBe(before);
  });

  it("lets the rows of two services into no common folder", async () => {
    const folder = await tempDir();
    await using staging = await startSandbox(SMALL);
    await using production = await startSandbox(SMALL);
    expect((await read(staging, "--output", folder)).code).toBe(0);
    expect((await read(production, "--output", folder)).code).toBe(2);
    expect(production.requests).toEqual([]);
  });

  it("goes on when the service was removed from the state, and once with a state that never had one", async () => {
    const path = join(await tempDir(), "state.json");
    await using before = await startSandbox(SMALL);
    await using after = await startSandbox(SMALL);
    expect((await read(before, "--stream", "people", "--state-file", path)).code).toBe(0);
    const saved = await readFile(path, "utf8");
    await writeFile(path, saved.replace(/"service":"[0-9a-f]{16}"/, '"service":null'));
    expect((await read(after, "--stream", "people", "--state-file", path)).code).toBe(0);
    expect((await read(before, "--stream", "people", "--state-file", path)).code).toBe(1);
  });
});

describe("read under another API key", () => {
  const OTHER_KEY = "svc_99999999_00112233445566778899aabbccddeeff";
  const readTwice = async (second: SandboxOptions) => {
    const path = join(await tempDir(), "state.json");
    const first = await startSandbox(SMALL);
    const { code } = await read(first, "--stream", "people", "--state-file", path);
    expect(code).toBe(0);
    await first[Symbol.asyncDispose]();
    await using later = await startSandbox({ ...SMALL, ...second, port: Number(new URL(first.url).port) });
    return await read(later, "--stream", "people", "--state-file", path);
  };

  it("refuses the state of another organization before the first record, and names the way out", async () => {
    const { code, stdout } = await readTwice({ key: OTHER_KEY, seed: 99 });
    expect(code).toBe(1);
    expect(stdout).toContain("shows none of the newest rows");
    expect(stdout).toMatch(/remove \\"witness\\" from the state/);
    expect(stdout).not.toContain('"RECORD"');
  });

  it("goes on with the same organization's new key", async () => {
    expect((await readTwice({ key: OTHER_KEY })).code).toBe(0);
  });
});
