import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { TAP as PROGRAM } from "../../support/cli.ts";
import { newProject, settings, TAP } from "./project.ts";

const RUN = ["run", "--no-install", TAP, "target-jsonl"];

describe("a selection in Meltano", () => {
  it("holds at every depth, and lets nothing out when the service is away during discovery", async () => {
    await using mine = await newProject({ people: 20, companies: 5 });
    const patterns = ["domain", "name", "headquarters", "headquarters.country"];
    const selected = JSON.stringify(patterns.map((field) => `companies.${field}`));
    Object.assign(mine.env, settings({ _SELECT: selected }));
    mine.sandbox.fault("status=503:times=always");
    const failed = await mine.meltano(...RUN);
    expect(failed.code).toBe(1);
    expect(failed.stdout + failed.stderr).toContain("Catalog discovery failed");
    expect(await mine.records("companies")).toEqual([]);
    mine.sandbox.fault();
    expect(await mine.meltano(...RUN)).toMatchObject({ code: 0 });
    const rows = await mine.records("companies");
    expect(rows.length).toBeGreaterThanOrEqual(5);
    for (const { headquarters, ...row } of rows) {
      expect(Object.keys(row).sort()).toEqual(["discoveredAt", "domain", "name"]);
      if (headquarters !== null) expect(Object.keys(headquarters as object)).toEqual(["country"]);
    }
  });

  it("fails over a kept catalog that was made before there were rows, until it is refreshed", async () => {
    await using mine = await newProject({ people: 20, companies: 0 });
    // Only for a tap with an environment of its own, as one that pip installs, does Meltano keep catalogs.
    const bin = join(mine.folder, ".meltano", "extractors", TAP, "venv", "bin");
    await mkdir(bin, { recursive: true });
    await symlink(PROGRAM, join(bin, TAP));
    await mine.shell(`sed -i 's/^\\( *\\)executable: ${TAP}$/&\\n\\1pip_url: kept/' meltano.yml`);
    expect(await mine.meltano(...RUN)).toMatchObject({ code: 0 });
    await mine.sandbox.close();

    await using service = await startSandbox({ people: 20, companies: 7, port: mine.sandbox.port });
    const failed = await mine.meltano(...RUN);
    expect(failed.code).toBe(1);
    expect(failed.stdout + failed.stderr).toMatch(
      /"companies": when the catalog was made .*--refresh-catalog/,
    );
    expect(await mine.records("companies")).toEqual([]);
    const [command = "", ...rest] = RUN;
    expect(await mine.meltano(command, "--refresh-catalog", ...rest)).toMatchObject({ code: 0 });
    expect(await mine.records("companies")).toHaveLength(service.companies().length);
  });
});
