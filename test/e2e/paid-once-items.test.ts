import { createHmac } from "node:crypto";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { file } from "../support/cli.ts";
import { countingStage, DAY, type Setting, sandboxStage } from "../support/job-stage.ts";

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

  it.each([
    [{ refresh_after_days: 2 }, true],
    [{}, false],
  ])("that rows which are not new name are bought again as %j says: %j", async (rule, isAgain) => {
    const stage = await sandboxStage("email_verification", { from_people: true, ...rule });
    await stage.play({});
    const first = stage.bought.toSorted();
    await stage.play({ after: 9 * DAY });
    expect(stage.bought.slice(first.length).toSorted()).toEqual(isAgain ? first : []);
  });

  it("are what the caps leave room for, and not looked for where nothing may be bought", async () => {
    const settings = { from_people: true, max_per_sync: 3, max_per_day: 5 };
    const stage = await sandboxStage("email_verification", settings);
    await stage.play({ bought: 3, warns: "at most 3 submissions a sync" }, { bought: 2 });
    const before = stage.requests.length;
    await stage.play({ bought: 0 });
    expect(stage.requests.slice(before).filter((request) => request.includes("people"))).toEqual([]);
    await stage.play({ after: DAY, bought: 3 });
    expect(new Set(stage.bought).size).toBe(8);
  });

  it("come from the export of a service without a list of companies", async () => {
    const stage = await sandboxStage("company_lookup", { from_companies: true }, { companyList: false });
    const warns = "Put the right path into endpoints.companies. Until then nobody can tell whether all rows";
    await stage.play({ bought: 4, warns });
  });

  it("are all known to a refresh of a service without totals, by the user's choice", async () => {
    const settings = { verify_counts: false };
    const stage = await sandboxStage("email_verification", { from_people: true }, {}, settings);
    const ids = { generation_id: 2, minimum_generation_id: 2, sync_id: 7 };
    await stage.play({ fault: "null-total:times=always", ids });
  });

  it("come from a CSV file; what is none is named by its line", async () => {
    const lines = ["\ufeffname,Domain", '"A, Inc.",WWW.1.example', "B,not a domain", "C,1.example.", ""];
    const path = await file("domains.csv", lines.join("\r\n"));
    const stage = await sandboxStage("company_lookup", { domains_file: path });
    await stage.play({ bought: ["1.example"], warns: `line 3 of "${path}"` });
  });

  it("come from no other cell of a CSV file, however many lines that one has", async () => {
    const domains_file = await file(
      "crm.csv",
      'domain,notes\n1.example,"met at\n2.example, twice"\n3.example,\n',
    );
    const stage = await sandboxStage("company_lookup", { domains_file });
    await stage.play({ bought: ["1.example", "3.example"] });
  });

  it("come from no CSV file that lacks their column; those of the config are submitted", async () => {
    const emails_file = await file("people.csv", "name,manager_email\nA,boss@x.example\n");
    const stage = await sandboxStage("email_verification", { emails: ["a@x.example"], emails_file });
    await stage.play({ bought: ["a@x.example"], fails: "config_error", says: 'has no column \\"email\\"' });
  });

  it("are one item in every spelling of an e-mail", async () => {
    const emails = ["a@x.example", "A@x.example.", '"a@x.example"', "'a@x.example'", "a@bücher.example"];
    const stage = await countingStage("email_verification", {
      emails: [...emails, "a@xn--bcher-kva.example"],
    });
    const bought = ["a@x.example", "a@xn--bcher-kva.example"];
    await stage.play({ bought, delivered: bought }, { bought: [] }, { isForgotten: true, bought: [] });
  });

  it("are not bought in a full refresh that looks for them among people", async () => {
    const settings = { domains: ["a.example"], from_people: true };
    const people = [{ id: "1", companyDomain: "b.example", discoveredAt: "2026-03-01T10:00:00.000Z" }];
    const stage = await countingStage("company_lookup", settings);
    await stage.play({ settings: { from_people: false }, bought: ["a.example"] });
    await stage.play({
      ...{ syncMode: "full_refresh", behaviour: { people } },
      ...{ bought: [], delivered: ["a.example"] },
    });
  });

  it.each<[Setting, string, object]>([
    ["email_verification", "ann@b\u00fccher.example", { hash_fields: ["email"] }],
    ["company_lookup", "x.example", { hash_fields: ["domain"] }],
    ["company_lookup", "x.example", { drop_fields: ["company_lookups.domain"] }],
  ])("do not leave in other fields where their own may not: %s %s %j", async (setting, given, config) => {
    const echo = (item: string) => ({ [item]: [`https://${item}/?e=${encodeURIComponent(item)}`] });
    const isLookup = setting === "company_lookup";
    const stage = await countingStage(setting, isLookup ? { domains: [given] } : { emails: [given] }, {
      ...{ hash_salt: "a long random text", ...config },
    });
    const wild = (method: string, item: string, response: ServerResponse): boolean => {
      const shouted = echo(item.toUpperCase());
      const result = {
        job_id: "job_0_x",
        domain: item,
        status: "success",
        contacts: [{ email: `p@${item}`, shouted }],
      };
      if (method !== (isLookup ? "GET" : "POST") || item === "") return false;
      response.end(JSON.stringify(isLookup ? result : { said: echo(item), shouted }));
      return true;
    };
    const ran = await stage.play({ behaviour: { wild } });
    const digest = createHmac("sha256", "a long random text")
      .update(stage.bought[0] ?? "")
      .digest("hex");
    const [item = ""] = stage.bought;
    expect(ran.text.toLowerCase()).not.toContain(item);
    expect(ran.text.toLowerCase()).not.toContain(encodeURIComponent(item).toLowerCase());
    expect(JSON.stringify(ran.records())).toContain("hash_fields" in config ? digest : "***");
  });

  it("are submitted although the rows of a stream cannot be read", async () => {
    const stage = await sandboxStage("company_lookup", { domains: ["1.example"], from_people: true });
    const ran = await stage.play({ fault: "status=500:times=always:path=people", fails: null });
    expect([stage.bought.includes("1.example"), ran.code]).toEqual([true, 1]);
  });
});
