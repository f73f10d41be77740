import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { deadPort } from "../../support/serve.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { pathWithPrograms } from "./programs.ts";
import { documented, shareProject, shellIn } from "./project.ts";

const shared = shareProject({ people: 1200, companies: 40 });

type Record_ = Readonly<Record<string, unknown>>;

/** What a table holds that takes each record for the newest of its key. */
const upserted = (records: readonly Record_[], key: string): Map<unknown, Record_> =>
  new Map(records.map((record) => [record[key], record]));

const parsed = (lines: readonly string[]): Record_[] => lines.map((line) => JSON.parse(line));

describe("Meltano", () => {
  it("takes the definition that the tap makes, and nothing in it buys", async () => {
    const yaml = readFileSync(`${shared.project.folder}/meltano.yml`, "utf8");
    expect(yaml).toContain("namespace: tap_contact_intelligence");
    expect(yaml).not.toMatch(/ERROR|pip_url: .*contact/);
    const words = ["config", "print", "tap-contact-intelligence", "--format=json"];
    const { stdout, code } = await shared.project.meltano(words);
    expect(code).toBe(0);
    const config = JSON.parse(stdout);
    expect(config).toMatchObject({ base_url: shared.sandbox.url, is_user: "all" });
    for (const name of ["company_lookup", "email_verification", "email_check", "external_api"]) {
      expect(Object.keys(config).filter((setting) => setting.startsWith(name))).toEqual([]);
    }
  });

  it("goes the page's way from the beginning, with a loader that Meltano installs, and without Meltano's Hub", async () => {
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

  it("config test is green for a key that works, and says what is wrong with another", async () => {
    await using mine = await shared.project.copy(shared.sandbox);
    expect(await mine.meltano(["config", "test", "tap-contact-intelligence"])).toMatchObject({ code: 0 });
    const wrong = { TAP_CONTACT_INTELLIGENCE_API_KEY: "svc_00000000_00000000000000000000000000000000" };
    const failed = await mine.meltano(["config", "test", "tap-contact-intelligence"], wrong);
    expect(failed.code).toBe(1);
    expect(failed.stdout + failed.stderr).toContain("INVALID_API_KEY");
  });

  it("loads all into target-jsonl, and then what changed", async () => {
    await using service = await startSandbox({ people: 1200, companies: 40 });
    await using mine = await shared.project.copy(service);
    await mine.shell(documented("run"));
    expect(parsed(await mine.lines("people.jsonl"))).toHaveLength(service.people().length);
    expect(parsed(await mine.lines("sources.jsonl"))).toHaveLength(service.sources().length);
    expect(upserted(parsed(await mine.lines("companies.jsonl")), "domain").size).toBe(
      service.companies().length,
    );

    service.arrive(7);
    service.recheck(20);
    const asked = service.requests.length;
    await mine.sync("target-jsonl");
    const people = parsed(await mine.lines("people.jsonl"));
    expect(people.length).toBeLessThan(1203 + 7 + 20 + 30);
    const table = upserted(people, "id");
    expect(table.size).toBe(service.people().length);
    for (const person of service.people()) expect(table.get(person.id)).toEqual(person);
    expect(service.requests.length - asked).toBeLessThan(20);
    const { people: bookmark } = await mine.state("target-jsonl");
    expect(Date.parse(bookmark?.asked ?? "")).toBeGreaterThan(Date.now() - 3_600_000);
  });

  it("loads into target-csv, the strictest about fields, with the selection of the page", async () => {
    await using service = await startSandbox({ people: 300, companies: 10 });
    await using mine = await shared.project.copy(service);
    await mine.sync("target-csv");
    const [header = ""] = await mine.lines("people.csv");
    expect(header).toContain("email");

    await using chosen = await shared.project.copy(service);
    const { stdout } = await chosen.shell(documented("select"));
    expect(stdout).toContain("people.jobTitle");
    expect(stdout).not.toContain("] people.email");
    await chosen.sync("target-csv");
    const people = await chosen.lines("people.csv");
    expect(people[0]).not.toContain("email");
    expect(people[0]).toContain("jobTitle");
    expect(people.length).toBe(service.people().length + 1);
    await expect(chosen.lines("companies.csv")).rejects.toThrow("ENOENT");
  });

  it("says so when a first selection deselects all", async () => {
    await using mine = await shared.project.copy(shared.sandbox);
    await mine.meltano(["select", "tap-contact-intelligence", "--exclude", "people", "email"]);
    const { stderr, stdout } = await mine.sync("target-jsonl");
    expect(stdout + stderr).toContain("selects no stream");
  });

  it("loses nothing when the tap fails midway", async () => {
    await using service = await startSandbox({ people: 6000, companies: 5, requestsPerMinute: 0 });
    const env = {
      TAP_CONTACT_INTELLIGENCE_MAX_WINDOW_ROWS: "1000",
      TAP_CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE: "6000",
    };
    await using mine = await shared.project.copy(service, env);
    const running = mine.meltano(["run", "tap-contact-intelligence", "target-jsonl"]);
    await expect.poll(() => exportsOf(service), { timeout: 60_000, interval: 5 }).toBeGreaterThan(3);
    service.fault("status=403:times=always");
    const failed = await running;
    expect(failed.code).toBe(1);
    const before = (await mine.lines("people.jsonl")).length;
    const { people: saved } = await mine.state("target-jsonl");
    const proven = (saved?.days ?? []).reduce((sum, [, , rows]) => sum + (rows ?? 0), 0);
    expect(proven, "rows of days that are proven").toBeGreaterThan(0);

    service.fault();
    await mine.sync("target-jsonl");
    const people = parsed(await mine.lines("people.jsonl"));
    const table = upserted(people, "id");
    for (const person of service.people()) expect(table.get(person.id)).toEqual(person);
    expect(people.length, "the second run goes on").toBeLessThan(before + service.people().length);
  });
});

const exportsOf = ({ requests }: Sandbox): number =>
  requests.filter(({ path }) => path.endsWith("/people/stream")).length;
