import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../support/temp-dir.ts";
import { newProject, settings, TAP } from "./project.ts";

const ITEMS = ["1.example", "2.example", "a@x.example"];

it("Meltano buys nothing twice with --full-refresh, and loads again what was bought", {
  timeout: 600_000,
}, async () => {
  await using mine = await newProject({ people: 20, companies: 5 });
  const { sandbox, env } = mine;
  const account = { EXTERNAL_API_API_URL: sandbox.url, EXTERNAL_API_API_KEY: sandbox.key };
  const emails = { EMAIL_VERIFICATION_EMAILS: '["a@x.example"]' };
  const receipts = { RECEIPTS_FILE: join(await tempDir(), "receipts.jsonl") };
  const ask = (domains: string): object =>
    Object.assign(env, settings({ ...account, ...emails, ...receipts, COMPANY_LOOKUP_DOMAINS: domains }));
  const bought = (): readonly string[] => sandbox.submissions.map(({ item }) => item).toSorted();
  const domains = async (): Promise<unknown[]> =>
    (await mine.records("company_lookups")).map(({ domain }) => domain).toSorted();

  ask('["1.example", "2.example"]');
  for (const stream of ["company_lookups", "company_lookup_contacts", "email_verifications", "sources"])
    expect(await mine.meltano("select", TAP, stream, "*")).toMatchObject({ code: 0 });
  await mine.sync("target-jsonl");
  expect(bought()).toEqual(ITEMS);
  expect(await domains()).toEqual(["1.example", "2.example"]);

  const twice = ["1.example", "1.example", "2.example", "2.example"];
  for (const more of [["--full-refresh"], []]) {
    await mine.sync("target-jsonl", ...more);
    expect(bought()).toEqual(ITEMS);
    expect(await domains()).toEqual(twice);
    expect(await mine.records("email_verifications")).toHaveLength(2);
  }

  ask('["3.example", "2.example"]');
  await mine.sync("target-jsonl", "--full-refresh");
  expect(bought()).toEqual([...ITEMS, "3.example"].toSorted());
});
