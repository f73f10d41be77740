import { createHmac } from "node:crypto";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { file } from "../support/cli.ts";
import {
  countingStage,
  DAY,
  playInSandbox,
  type Scene,
  type Setting,
  sandboxStage,
} from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

const csv = (...lines: readonly string[]): Promise<string> =>
  file("items.csv", lines.map((line) => `${line}\r\n`).join(""));

const CONTACTS = { streams: "company_lookup_contacts" };

const SCENES: Readonly<Record<string, Scene>> = {
  "are looked up with a row for each contact, which buys nothing itself": {
    settings: { domains: ["3.example"] },
    syncs: [
      { ...CONTACTS, bought: ["3.example"], delivered: 3, says: '"email":"person2@3.example"' },
      { ...CONTACTS, bought: [], delivered: [] },
    ],
  },
  "come from the list of companies, under the same caps": {
    settings: { from_companies: true, max_lookups_per_sync: 3 },
    syncs: [{ bought: 3 }, { bought: 1 }, { bought: [] }],
  },
  "come from the export of a service without a list of companies": {
    settings: { from_companies: true },
    options: { companyList: false },
    syncs: [{ bought: 4, warns: "so the connector cannot tell whether an export was cut" }],
  },
  "are all known to a refresh of a service without totals, by the user's choice": {
    setting: "email_verification",
    settings: { from_people: true },
    config: { verify_counts: false, receipts_file: join(await tempDir(), "receipts.jsonl") },
    syncs: [
      { fault: "null-total:times=always" },
      { ids: { generation_id: 2, minimum_generation_id: 2, sync_id: 7 }, bought: [] },
    ],
  },
  "come from their column of a CSV file, however many lines a cell has; what is none is named by its line": {
    settings: {
      domains_file: await csv(
        ...["\ufeffname,Domain,notes", '"A, Inc.",WWW.1.example,"met at', '2.example, twice"'],
        ...["B,not a domain,", "C,1.example.,", "D,3.example,"],
      ),
    },
    syncs: [{ bought: ["1.example", "3.example"], warns: "line 4 of " }],
  },
  "come from no CSV file that lacks their column; those of the config are submitted": {
    setting: "email_verification",
    settings: { emails: ["a@x.example"], emails_file: await csv("name,manager_email", "A,boss@x.example") },
    syncs: [{ bought: ["a@x.example"], fails: "config_error", says: 'has no column \\"email\\"' }],
  },
  "come from no CSV file with a quote that nothing closes, because all after it would be one cell": {
    settings: { domains_file: await csv("domain", "1.example", '"2.example', "3.example") },
    syncs: [{ bought: ["1.example"], fails: "config_error", says: "line 3 has a cell with an open quote" }],
  },
  "are submitted although the rows of a stream cannot be read": {
    settings: { domains: ["1.example"], from_people: true },
    syncs: [
      { fault: "status=500:times=always:path=people", fails: "transient_error", bought: ["1.example"] },
    ],
  },
};

describe("the items of a job", () => {
  it.each(Object.entries(SCENES))("%s", (_, scene) => playInSandbox(scene));

  it.each([
    ...["company.domain", '"properties.domain"', "Domain Name", "domains", "company_domain", "companyDomain"],
    ...["domain.name", "company.website", "data.host", "Account.Domain__c", "company.domain,"],
  ])("do not have the header %s of a list, or text that is no host", async (header) => {
    const others = "n.a. 1.5e3 1.e10 2026.q3 localhost 1.2.3.4 https://3.example/about 3.example/ acme".split(
      " ",
    );
    const domains_file = await csv(header, "1.example", ...others, "2.example");
    const stage = await sandboxStage("company_lookup", { domains_file });
    await stage.play({ bought: ["1.example", "2.example"], warns: "Write one domain or address per line" });
  });

  it.each<[text: string, says: string]>([
    ['["1.example","2.example","3.example"]', "one JSON array"],
    [
      '{"domain":["1.example","2.example","3.example"]}',
      'line 1 has a value for \\"domain\\" that is not text',
    ],
    ["a.domain,b.domain\n1.example,2.example", 'has no column \\"domain\\"'],
    ["name,domain,site\nSmith, Jones,1.example,2.example", "line 2 has 4 cells"],
    ["<table><td>1.example", "HTML or XML"],
    ["", "it is empty"],
  ])("are refused from a file with %j", async (text, says) => {
    const stage = await sandboxStage("company_lookup", { domains_file: await file("items", text) });
    await stage.play({ bought: [], fails: "config_error", says });
  });

  it("come from JSON lines, and no two addresses are one because a letter changes with its case", async () => {
    const rows = ["kate", "\u212aate", "\u0130nci", "inci", "STRA\u00dfE", "strasse"].map((name) => ({
      "contact.email": `${name}@x.example`,
    }));
    const emails_file = await file("items", rows.map((row) => JSON.stringify(row)).join("\n"));
    const stage = await sandboxStage("email_verification", { emails_file });
    const bought = ["kate", "\u0130nci", "inci", "stra\u00dfe", "strasse"].map((name) => `${name}@x.example`);
    await stage.play({ bought, warns: "1 invalid item, never sent: line 2 of" });
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
    const exports = service.requests.slice(before).filter(({ path }) => path.endsWith("/stream"));
    const days = exports.map(({ query }) => query["discovered_from"]);
    expect(days, "only the last days are read again").toEqual(["2025-11-01"]);
    expect(new Set(stage.bought).size).toBe(stage.bought.length);
    expect(stage.bought.length).toBeGreaterThan(emails.size);
  });

  it.each<[Setting, string, object]>([
    ["email_verification", "ann@b\u00fccher.example", { hash_fields: ["email"] }],
    ["company_lookup", "x.example", { hash_fields: ["domain"] }],
    ["company_lookup", "x.example", { drop_fields: ["company_lookups.domain"] }],
  ])("do not leave in other fields where their own may not: %s %s %j", async (setting, given, config) => {
    const echo = (item: string) => ({ [item]: [`https://${item}/?e=${encodeURIComponent(item)}`] });
    const isLookup = setting === "company_lookup";
    const salted = { hash_salt: "a long random text", ...config };
    const stage = await countingStage(setting, { [isLookup ? "domains" : "emails"]: [given] }, salted);
    const answer = (response: ServerResponse, item: string) => {
      const shouted = echo(item.toUpperCase());
      const contacts = [{ email: `p@${item}`, shouted }];
      const result = { job_id: "job_0_x", domain: item, status: "success", contacts };
      response.end(JSON.stringify(isLookup ? result : { said: echo(item), shouted }));
    };
    const ran = await stage.play({ behaviour: { wild: { method: isLookup ? "GET" : "POST", answer } } });
    const [item = ""] = stage.bought;
    const digest = createHmac("sha256", "a long random text").update(item).digest("hex");
    expect(ran.text.toLowerCase()).not.toContain(item);
    expect(ran.text.toLowerCase()).not.toContain(encodeURIComponent(item).toLowerCase());
    expect(JSON.stringify(ran.records())).toContain("hash_fields" in config ? digest : "***");
  });
});
