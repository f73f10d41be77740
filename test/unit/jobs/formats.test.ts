import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DAY, JobService } from "../../support/job-service.ts";
import { ROOT } from "../../support/run.ts";
import { tempDir } from "../../support/temp-dir.ts";

const FOLDER = join(ROOT, "test/unit/jobs/formats");
const ITEMS = ["answered", "failed", "open", "lost", "refused", "new"].map((name) => `${name}.example`);

/** States and receipts of released versions. Every later version reads them, and buys nothing that they know. */
it.each(["state-4.json", "receipts-3.jsonl"])("%s is read", async (name) => {
  const receipts = name.startsWith("receipts") ? join(await tempDir(), name) : "";
  if (receipts !== "") await cp(join(FOLDER, name), receipts);
  const service = new JobService(receipts);
  const asked: string[] = [];
  service.known = { job_0: "answered.example", job_2: "open.example" };
  service.result = (item, job_id) => {
    asked.push(item);
    return [200, { job_id, domain: item, status: "success", contacts: [], credits_used: 1 }];
  };
  service.now += DAY / 48;
  const states = receipts === "" ? JSON.parse(await readFile(join(FOLDER, name), "utf8")) : {};
  const { error, rows, said } = await service.sync({ items: ITEMS, states });
  expect([error, service.bought]).toEqual([undefined, ["new.example"]]);
  const delivered = receipts === "" ? ["open.example"] : ["answered.example", "open.example"];
  expect(rows.map(({ domain }) => domain)).toEqual(expect.arrayContaining(delivered));
  expect([...new Set(asked)].toSorted()).toEqual([...delivered, "new.example"].toSorted());
  expect(said.join("\n")).toContain("6 today");
});
