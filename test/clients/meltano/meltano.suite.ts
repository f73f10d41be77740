import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { deadPort } from "../../support/serve.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { pathWithPrograms } from "./programs.ts";
import { documented, newProject, type Project, settings, shellIn, TAP } from "./project.ts";

/** Fails unless the newest record of each person is the service's. Returns how many records there are. */
async function expectPeople(mine: Project): Promise<number> {
  const records = await mine.records("people");
  const table = new Map(records.map((record) => [record["id"], record]));
  expect([...table.keys()].sort()).toEqual(
    mine.sandbox
      .people()
      .map(({ id }) => id)
      .sort(),
  );
  for (const person of mine.sandbox.people()) expect(table.get(person.id)).toEqual(person);
  return records.length;
}

const exportsOf = ({ requests }: Sandbox): number =>
  requests.filter(({ path }) => path.endsWith("/people/stream")).length;

describe("Meltano", () => {
  it("runs the commands of the page in a new project, without Meltano's Hub", async () => {
    await using service = await startSandbox({ people: 50, companies: 5 });
    const folder = await tempDir();
    const env = {
      PATH: pathWithPrograms(["meltano"]),
      HOME: folder,
      MELTANO_HUB_API_ROOT: `http://127.0.0.1:${await deadPort()}`,
    };
    const blocks = ["project", "add", "run"].map(documented);
    await shellIn(folder, blocks.join("\n"), service.url, env);
    const loaded = await readFile(join(folder, "contacts", "output", "people.jsonl"), "utf8");
    expect(loaded.trimEnd().split("\n")).toHaveLength(service.people().length);
  });

  it("accepts the tap's own definition, which buys nothing, and tests a key", async () => {
    await using mine = await newProject({ people: 20, companies: 5 });
    const config = JSON.parse((await mine.meltano("config", "print", TAP, "--format=json")).stdout);
    expect(config).toMatchObject({ base_url: mine.sandbox.url, is_user: "all" });
    const buying = /^(company_lookup|email_verification|email_check|external_api)/;
    expect(Object.keys(config).filter((setting) => buying.test(setting))).toEqual([]);
    expect(await mine.meltano("config", "test", TAP)).toMatchObject({ code: 0 });
    Object.assign(mine.env, settings({ API_KEY: `svc_00000000_${"0".repeat(32)}` }));
    const failed = await mine.meltano("config", "test", TAP);
    expect(failed.code).toBe(1);
    expect(failed.stdout + failed.stderr).toContain("INVALID_API_KEY");
  });

  it("loads all into target-jsonl, and then what changed", async () => {
    await using mine = await newProject({ people: 1200, companies: 40 });
    const { sandbox } = mine;
    await mine.shell(documented("run"));
    const first = await expectPeople(mine);
    expect(first).toBe(sandbox.people().length);
    expect(await mine.records("sources")).toHaveLength(sandbox.sources().length);
    const domains = (await mine.records("companies")).map(({ domain }) => domain);
    expect(new Set(domains).size).toBe(sandbox.companies().length);

    sandbox.arrive(7);
    sandbox.recheck(20);
    const asked = sandbox.requests.length;
    await mine.sync("target-jsonl");
    expect(await expectPeople(mine)).toBeLessThan(first + 7 + 20 + 30);
    expect(sandbox.requests.length - asked).toBeLessThan(20);
    const { people: bookmark } = await mine.state();
    expect(Date.parse(bookmark?.asked ?? "")).toBeGreaterThan(Date.now() - 3_600_000);
  });

  it("loads into target-csv, the strictest about fields, with the selection of the page", async () => {
    await using mine = await newProject({ people: 300, companies: 10 });
    const { stdout } = await mine.shell(documented("select"));
    expect(stdout).toContain("people.jobTitle");
    expect(stdout).not.toContain("] people.email");
    await mine.sync("target-csv");
    const people = await mine.lines("people.csv");
    expect(people[0]).not.toContain("email");
    expect(people[0]).toContain("jobTitle");
    expect(people.length).toBe(mine.sandbox.people().length + 1);
    await expect(mine.lines("companies.csv")).rejects.toThrow("ENOENT");
  });

  it("loses nothing when the tap fails midway", async () => {
    await using mine = await newProject({ people: 6000, companies: 5 });
    const { sandbox } = mine;
    Object.assign(mine.env, settings({ MAX_WINDOW_ROWS: "1000", REQUESTS_PER_MINUTE: "6000" }));
    const running = mine.meltano("run", TAP, "target-jsonl");
    await expect.poll(() => exportsOf(sandbox), { timeout: 60_000, interval: 5 }).toBeGreaterThan(3);
    sandbox.fault("status=403:times=always");
    expect((await running).code).toBe(1);
    const before = (await mine.records("people")).length;
    const { people: saved } = await mine.state();
    const proven = (saved?.days ?? []).filter(({ status, rows }) => status === "proven" && rows > 0);
    expect(proven.length, "days of rows that are proven").toBeGreaterThan(0);

    sandbox.fault();
    await mine.sync("target-jsonl");
    const after = await expectPeople(mine);
    expect(after, "the second run goes on").toBeLessThan(before + sandbox.people().length);
  });
});
