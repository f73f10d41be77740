import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { TAP } from "./programs.ts";
import { type Project, shareProject } from "./project.ts";

const template = shareProject({ people: 20, companies: 5 });

const RUN = ["run", "--no-install", "tap-contact-intelligence", "target-jsonl"];

const select = (...patterns: string[]): Readonly<Record<string, string>> => ({
  TAP_CONTACT_INTELLIGENCE__SELECT: JSON.stringify(patterns),
});

async function rowsOf(project: Project, stream: string): Promise<Record<string, unknown>[]> {
  const lines = await project.lines(`${stream}.jsonl`).catch(() => []);
  return lines.map((line) => JSON.parse(line));
}

/** Gives the tap an environment of its own, as for a tap that pip installs: only then does Meltano keep catalogs. */
async function keepCatalogs(project: Project): Promise<void> {
  const bin = join(project.folder, ".meltano", "extractors", "tap-contact-intelligence", "venv", "bin");
  await mkdir(bin, { recursive: true });
  await symlink(TAP, join(bin, "tap-contact-intelligence"));
  await project.shell(
    "sed -i 's/^\\( *\\)executable: tap-contact-intelligence$/&\\n\\1pip_url: kept/' meltano.yml && grep -q 'pip_url: kept' meltano.yml",
  );
}

describe("a selection in Meltano", () => {
  it("lets nothing out when the service is away during discovery", async () => {
    await using service = await startSandbox({ people: 20, companies: 5 });
    await using project = await template.project.copy(service, select("companies.domain", "companies.name"));
    service.fault("status=503:times=always");
    const failed = await project.meltano(RUN);
    expect(failed.code).toBe(1);
    expect(failed.stdout + failed.stderr).toContain("Catalog discovery failed");
    expect(await rowsOf(project, "companies")).toEqual([]);
    service.fault();
    expect((await project.meltano(RUN)).code).toBe(0);
    const rows = await rowsOf(project, "companies");
    expect(rows.length).toBeGreaterThanOrEqual(5);
    for (const row of rows) expect(Object.keys(row).sort()).toEqual(["discoveredAt", "domain", "name"]);
  });

  it("holds at every depth", async () => {
    await using service = await startSandbox({ people: 20, companies: 5 });
    const patterns = ["companies.domain", "companies.headquarters", "companies.headquarters.country"];
    await using project = await template.project.copy(service, select(...patterns));
    expect((await project.meltano(RUN)).code).toBe(0);
    for (const { headquarters } of await rowsOf(project, "companies")) {
      if (headquarters !== null) expect(Object.keys(headquarters as object)).toEqual(["country"]);
    }
  });

  it("fails over a kept catalog that was made before there were rows, until it is refreshed", async () => {
    const empty = await startSandbox({ people: 20, companies: 0 });
    await using project = await template.project.copy(empty);
    await keepCatalogs(project);
    expect((await project.meltano(RUN)).code).toBe(0);
    const asked = empty.requests.length;
    expect((await project.meltano(RUN)).code).toBe(0);
    const second = empty.requests
      .slice(asked)
      .filter(({ path, query }) => path.includes("/sources") && query["page"] === "1");
    expect(second, "the second run lists sources once: its catalog is kept").toHaveLength(1);
    await empty.close();

    await using service = await startSandbox({ people: 20, companies: 7, port: empty.port });
    const failed = await project.meltano(RUN);
    expect(failed.code).toBe(1);
    expect(failed.stdout + failed.stderr).toMatch(
      /"companies": when the catalog was made .*--refresh-catalog/,
    );
    expect(await rowsOf(project, "companies")).toEqual([]);
    const [command = "", ...rest] = RUN;
    expect((await project.meltano([command, "--refresh-catalog", ...rest])).code).toBe(0);
    expect((await rowsOf(project, "companies")).length).toBe(service.companies().length);
  });
});
