import { describe, expect, it } from "vitest";
import { file } from "../support/cli.ts";
import { DAY, sandboxStage } from "../support/job-stage.ts";

describe("the items of a job", () => {
  it("are a row for each contact in company_lookup_contacts, which buys nothing itself", async () => {
    const stage = await sandboxStage("company_lookup", { domains: ["3.example"] });
    const streams = "company_lookup_contacts";
    const first = await stage.play({ streams, delivered: 3 });
    expect(first.records()[1]).toMatchObject({
      ...{ job_id: expect.stringMatching(/^job_/), position: 1 },
      ...{ domain: "3.example", email: "person2@3.example", verified_sources: [expect.any(String)] },
    });
    await stage.play({ streams, delivered: 0 });
    expect(stage.bought).toEqual(["3.example"]);
  });

  it("come from the e-mails of people, undropped, each once", async () => {
    const config = { drop_fields: ["people.email"] };
    const stage = await sandboxStage("email_verification", { from_people: true }, {}, config);
    const { service } = stage;
    const people = service.people().flatMap(({ email }) => (email === null ? [] : [email.toLowerCase()]));
    const emails = new Set(people);
    await stage.play({ bought: [...emails] });
    service.arrive(2);
    const before = service.requests.length;
    await stage.play({ after: 3 * DAY });
    const days = service.requests.slice(before).flatMap(({ query }) => query["discovered_from"] ?? []);
    expect(days, "only the last days are read again").toEqual(["2026-03-01", "2026-03-01"]);
    expect(new Set(stage.bought).size).toBe(stage.bought.length);
    expect(stage.bought.length).toBeGreaterThan(emails.size);
  });

  it("are what the caps leave room for; the next sync takes the next", async () => {
    const settings = { from_people: true, max_per_sync: 3, max_per_day: 5 };
    const stage = await sandboxStage("email_verification", settings);
    const warns = "This sync submits what the rows of people name (at most 3 submissions a sync)";
    await stage.play(
      { bought: 3, warns, warnings: 1 },
      { bought: 2 },
      { bought: 0 },
      { after: DAY, bought: 3 },
    );
    expect(new Set(stage.bought).size).toBe(8);
  });

  it("come from a CSV file; what is none is named by its line", async () => {
    const lines = ["\ufeffname,Domain", '"A, Inc.",WWW.1.example', "B,not a domain", "C,1.example.", ""];
    const path = await file("domains.csv", lines.join("\r\n"));
    const stage = await sandboxStage("company_lookup", { domains_file: path });
    await stage.play({ bought: ["1.example"], warns: `line 3 of "${path}"` });
  });

  it.each([
    ["the rows of a stream cannot be read", "status=500:times=always:path=people", "the service failed"],
    [
      "an export shows the same rows for ever",
      "endless=row:every=20:times=always",
      "no new row came for 5 s",
    ],
  ])("are submitted although %s", async (_, fault, message) => {
    const settings = { domains: ["1.example"], from_people: true };
    const config = { idle_timeout_seconds: 5 };
    const stage = await sandboxStage("company_lookup", settings, {}, config);
    const ran = await stage.play({ fault, fails: null });
    expect(stage.bought).toContain("1.example");
    expect(ran.code).toBe(1);
    expect(ran.errors()).toEqual([expect.objectContaining({ message: expect.stringContaining(message) })]);
  });
});
