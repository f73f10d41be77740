import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { CountingService, envelope, refusing } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { jobConfig } from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

const KEY = `svc_00000000_${"5".repeat(32)}`;
/** Nothing listens there. */
const NOWHERE = "http://127.0.0.1:9";

const MOMENT = expect.stringMatching(/^2\d{3}-/);
const ROWS = { from_people: true };
const NONE = { submitted: 0, credits: 0, open: 0 };

let folder = "";
beforeEach(async () => {
  folder = await tempDir();
});

const configOf = (url: string, jobs: object): Promise<string> => {
  const receipts_file = join(folder, "receipts.jsonl");
  return file("config.json", jobConfig({ url, key: KEY }, { receipts_file, ...jobs }));
};

const JOBS = {
  company_lookup: {
    domains: ["a.example", "A.example", "www.A.example, b.example", "not a domain", "c.example"],
    from_people: true,
    max_lookups_per_sync: 2,
    max_credits_per_month: 40,
  },
  email_check: { emails: ["ü@x.example"] },
  email_verification: { emails: ["one@x.example", "two@x.example"], max_per_day: 1 },
};

const shown = (...args: readonly string[]) => run(CONNECTOR, ["jobs", ...args]);

describe("jobs", () => {
  it("says what a first run would submit, and asks the service nothing", async () => {
    const config = await configOf(NOWHERE, JOBS);
    const { code, stdout, stderr } = await shown("--config", config);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(
      "at most 2 of 3 waiting items, and what the rows of people name. It may use up to 40 credits",
    );
    expect(stdout).toContain("\nü@x.example  new\n");
    const [lookups] = JSON.parse((await shown("--config", config, "--json")).stdout);
    const nothing = { due: null, job_id: null, submitted: null, credits: null, code: null };
    expect(lookups).toEqual({
      ...{
        setting: "company_lookup",
        would_submit: 2,
        waiting: 3,
        unknown_inputs: ["people"],
        price: null,
        may_cost: 40,
      },
      ...{ open: 0, unknown: 0, invalid: { count: 1, places: ["company_lookup.domains[3]"] }, suppressed: 0 },
      ...{ today: NONE, this_month: NONE, spent: [], receipts: expect.any(String), purchases: 0 },
      items: ["a", "b", "c"].map((name, nth) => ({
        ...{ item: `${name}.example`, place: `company_lookup.domains[${nth * 2}]`, step: "new", ...nothing },
      })),
    });
    expect(await readdir(folder)).toEqual([]);
    // The file of --state-file may be missing, and that of --state may not.
    const missing = join(folder, "not-yet.json");
    expect((await shown("--config", config, "--state-file", missing)).stdout).toBe(stdout);
    const refused = await shown("--config", config, "--state", missing);
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(refused.stderr).toContain(`Cannot read the state file "${missing}"`);
  });

  it.each([
    [{ company_lookup: ROWS }, "submit only what the rows of people name. It may use up to"],
    [{ company_lookup: { ...ROWS, max_lookups_per_sync: 0 } }, "only what the rows of people name\n"],
    [{ email_check: { emails: ["no address"] } }, "email_check: the next run would submit nothing\n"],
    [{}, "The config has no jobs\n"],
  ])("says of %j what the next run would submit", async (jobs, text) => {
    const { stdout } = await shown("--config", await configOf(NOWHERE, jobs));
    expect(stdout).toContain(text);
  });

  it("submits at most ten items where nothing would remember them", async () => {
    const emails = Array.from({ length: 20 }, (_, nth) => `e${nth}@x.example`);
    const config = await configOf(NOWHERE, { receipts_file: "", email_verification: { emails } });
    const { stdout } = await shown("--config", config, "--json");
    expect(JSON.parse(stdout)).toMatchObject([{ would_submit: 10, waiting: 20, may_cost: null }]);
  });

  it("shows what became of each item, by the receipts and by the state", async () => {
    const jobs = {
      company_lookup: { domains: ["a.example", "b.example", "refused.example"], max_wait_seconds: 10 },
      email_verification: { emails: ["one@x.example"], refresh_after_days: 7 },
    };
    const stateFile = join(folder, "state.json");
    const service = await CountingService.start();
    service.behaviour = {
      ...refusing(400, "SOURCE_NOT_VERIFIABLE", ["refused.example"]),
      result: (_id, item) => (item === "b.example" ? envelope(404, "JOB_\u001b[31mGONE") : undefined),
      price: 3,
    };
    const config = await configOf(service.url, jobs);
    const args = ["--config", config, "--state-file", stateFile, "--stream", "company_lookups"];
    const read = ["read", ...args, "--stream", "email_verifications"];
    await run(CONNECTOR, read, { clock: hurriedClock() });
    await service[Symbol.asyncDispose]();
    expect(service.bought.toSorted()).toEqual(["a.example", "b.example", "one@x.example"]);
    for (const state of [["--state-file", stateFile], ["--state", stateFile], []]) {
      const { code, stdout } = await shown("--config", config, "--json", ...state);
      expect(code).toBe(0);
      const [lookups, verifications] = JSON.parse(stdout);
      expect(lookups).toMatchObject({
        ...{ would_submit: 0, waiting: 0, may_cost: 0, open: 1, today: { credits: 3 } },
        spent: [[expect.any(String), 2, 3]],
        items: [
          { item: "a.example", step: state.length === 0 ? "answered" : "done" },
          { item: "b.example", step: "open", job_id: expect.stringMatching(/^job_/), submitted: MOMENT },
          { item: "refused.example", step: "refused", code: "SOURCE_NOT_VERIFIABLE", due: MOMENT },
        ],
      });
      expect(verifications).toMatchObject({ would_submit: 0, today: { submitted: 1 }, may_cost: null });
    }
    const table = (await shown("--config", config, "--state-file", stateFile)).stdout;
    expect(table).toContain("Today: 2 submitted, 3 credits; this month: 2 submitted, 3 credits");
    expect(table).toMatch(/^item +step +job +submitted +due +credits +code$/m);
    expect(table).toMatch(/^b\.example +open +job_\d_x +2/m);
    expect(table).not.toContain("\u001b");
    expect(table).not.toContain(KEY);
  });
});
