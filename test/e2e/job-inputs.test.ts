import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { JobRuntime } from "../support/job-runtime.ts";

const DAY = 86_400_000;
const start = (): Promise<Sandbox> =>
  startSandbox({ people: 20, companies: 4, requestsPerMinute: 0, now: "2026-03-02T10:00:00Z" });

const runtime = (sandbox: Sandbox, settings: object): JobRuntime =>
  new JobRuntime(
    {
      base_url: sandbox.url,
      api_key: sandbox.key,
      requests_per_minute: 6000,
      external_api: { api_url: sandbox.url, api_key: sandbox.key },
      ...settings,
    },
    sandbox,
  );

const items = (sandbox: Sandbox): readonly string[] => sandbox.submissions.map(({ item }) => item);

describe("company_lookup_contacts", () => {
  it("has a row for each contact, without buying anything itself", async () => {
    await using sandbox = await start();
    const runs = runtime(sandbox, { company_lookup: { domains: ["3.example"] } });
    const first = await runs.readStream("company_lookup_contacts");
    expect(first.code).toBe(0);
    expect(first.records()).toHaveLength(3);
    expect(first.records()[1]).toMatchObject({
      job_id: expect.stringMatching(/^job_/),
      position: 1,
      domain: "3.example",
      email: "person2@3.example",
      verified_sources: [expect.any(String)],
    });
    const second = await runs.readStream("company_lookup_contacts", { state: first.state() });
    expect(second.records()).toEqual([]);
    expect(items(sandbox)).toEqual(["3.example"]);
  });
});

describe("the items of a job", () => {
  it("come from the e-mails of people, undropped, each once", async () => {
    await using sandbox = await start();
    const settings = { email_verification: { from_people: true }, drop_fields: ["people.email"] };
    const runs = runtime(sandbox, settings);
    const first = await runs.readStream("email_verifications");
    expect(first.code).toBe(0);
    const emails = new Set(
      sandbox.people().flatMap(({ email }) => (email === null ? [] : [email.toLowerCase()])),
    );
    expect(new Set(items(sandbox))).toEqual(emails);
    runs.pass(3 * DAY);
    sandbox.arrive(2);
    const before = sandbox.requests.length;
    await runs.readStream("email_verifications", { state: first.state() });
    const days = sandbox.requests.slice(before).flatMap(({ query }) => query["discovered_from"] ?? []);
    expect(days, "only the last days are read again").toEqual(["2026-03-01", "2026-03-01"]);
    expect(new Set(items(sandbox)).size).toBe(items(sandbox).length);
    expect(items(sandbox).length).toBeGreaterThan(emails.size);
  });

  it("are what the caps leave room for; the next sync takes the next", async () => {
    await using sandbox = await start();
    const runs = runtime(sandbox, {
      email_verification: { from_people: true, max_per_sync: 3, max_per_day: 5 },
    });
    const first = await runs.readStream("email_verifications");
    expect(first.warnings()).toEqual([
      expect.stringContaining(
        "This sync submits what the rows of people name (at most 3 submissions a sync)",
      ),
    ]);
    expect(items(sandbox)).toHaveLength(3);
    const second = await runs.readStream("email_verifications", { state: first.state() });
    expect(items(sandbox)).toHaveLength(5);
    const third = await runs.readStream("email_verifications", { state: second.state() });
    expect(items(sandbox)).toHaveLength(5);
    runs.pass(DAY);
    await runs.readStream("email_verifications", { state: third.state() });
    expect(items(sandbox)).toHaveLength(8);
    expect(new Set(items(sandbox)).size).toBe(8);
  });

  it("come from a CSV file; what is none is named by its line", async () => {
    await using sandbox = await start();
    const folder = await mkdtemp(join(tmpdir(), "job-inputs-"));
    const path = join(folder, "domains.csv");
    await writeFile(
      path,
      '\ufeffname,Domain\r\n"A, Inc.",WWW.1.example\r\nB,not a domain\r\nC,1.example.\r\n',
    );
    const ran = await runtime(sandbox, { company_lookup: { domains_file: path } }).readStream(
      "company_lookups",
    );
    expect(items(sandbox)).toEqual(["1.example"]);
    expect(ran.warnings()).toContainEqual(expect.stringContaining(`line 3 of "${path}"`));
    await rm(folder, { recursive: true });
  });

  it("are submitted although the rows of a stream cannot be read", async () => {
    await using sandbox = await start();
    sandbox.fault("status=500:times=always:path=people");
    const settings = { company_lookup: { domains: ["1.example"], from_people: true } };
    const ran = await runtime(sandbox, settings).readStream("company_lookups");
    expect(items(sandbox)).toEqual(["1.example"]);
    expect(ran.records()).toHaveLength(1);
    expect(ran.code).toBe(1);
  });

  it("are submitted although an export shows the same rows for ever", async () => {
    await using sandbox = await start();
    sandbox.fault("endless=row:every=20:times=always");
    const settings = {
      company_lookup: { domains: ["1.example"], from_people: true },
      idle_timeout_seconds: 5,
    };
    const ran = await runtime(sandbox, settings).readStream("company_lookups");
    expect(items(sandbox)).toContain("1.example");
    expect(ran.errors()).toEqual([
      expect.objectContaining({ message: expect.stringContaining("no new row came for 5 s") }),
    ]);
    expect(ran.code).toBe(1);
  });
});
