import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { recordsOf as dataOf, linesOf, statesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { sandboxStage } from "../support/job-stage.ts";
import { recordsOf, tap } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

const QUICK = { requestsPerMinute: 0, people: 60, companies: 8, undated: 3 } as const;

/** An account of which every third person and every second company is suppressed, by one of their names. */
async function held() {
  const { sandbox } = await sandboxWith(QUICK);
  const people = sandbox.people().filter((_, nth) => nth % 3 === 0);
  const companies = sandbox.companies().filter((_, nth) => nth % 2 === 0);
  const named = people.map(({ id, email }, nth) =>
    email === null || nth % 2 === 0 ? id.toUpperCase() : ` ${email.toUpperCase()}.`,
  );
  const suppress_file = await file(
    "suppressed.txt",
    [...named, ...companies.map(({ domain }) => domain)].join("\n"),
  );
  const config = await configFor(sandbox, { suppress_file });
  const secrets = [
    ...people.flatMap(({ id, email }) => (email === null ? [id] : [id, email])),
    ...companies.map(({ domain }) => `"domain":"${domain}"`),
  ];
  const left = { people: 63 - people.length, companies: 8 - companies.length };
  return { sandbox, config, secrets, left, people, companies };
}

const expectSilent = (texts: readonly string[], secrets: readonly string[]): void => {
  for (const text of texts) for (const secret of secrets) expect(text.includes(secret), secret).toBe(false);
};

describe("suppress_file", () => {
  it("holds rows back in Airbyte's language, counts them as shown, and says how many", async () => {
    const { config, secrets, left, people, companies } = await held();
    const summary = join(await tempDir(), "summary.json");
    const { code, messages, stdout, stderr } = await connector([
      "read",
      "--config",
      config,
      "--summary",
      summary,
    ]);
    expect(code, stdout.slice(-2000)).toBe(0);
    expect([dataOf(messages, "people").length, dataOf(messages, "companies").length]).toEqual([
      left.people,
      left.companies,
    ]);
    const said = await readFile(summary, "utf8");
    expectSilent([stdout, stderr, said], secrets);
    const { streams } = JSON.parse(said) as { streams: { stream: string; suppressed: number }[] };
    expect(streams.map(({ stream, suppressed }) => [stream, suppressed])).toEqual([
      ["people", people.length],
      ["companies", companies.length],
      ["sources", 0],
    ]);
    expect(stdout).toContain(`${left.people} rows in 1 window, ${people.length} suppressed`);
    const days = statesOf(messages, "people").at(-1)?.["days"] as [string, string, number, null, number][];
    const dated = people.filter(({ discoveredAt }) => discoveredAt !== null);
    const numbers = days.map(([, , rows, , suppressed = 0]) => [rows, suppressed]);
    const [rows, suppressed] = numbers.reduce(([a = 0, b = 0], [c = 0, d = 0]) => [a + c, b + d], [0, 0]);
    expect([rows, suppressed]).toEqual([60, dated.length]);

    const state = await file(
      "state.json",
      stdout
        .split("\n")
        .filter((line) => line.includes('"STATE"'))
        .join("\n"),
    );
    const again = await connector(["read", "--config", config, "--state", state]);
    expect([again.code, dataOf(again.messages, "people").length <= left.people]).toEqual([0, true]);
    expectSilent([again.stdout, again.stderr], secrets);
  });

  it("holds in Singer's language, in bare lines and in files", async () => {
    const { config, secrets, left, companies } = await held();
    const { messages, logs } = await tap(["--config", config]);
    expect(recordsOf(messages, "people")).toHaveLength(left.people);
    expectSilent([JSON.stringify(messages), JSON.stringify(logs)], secrets);

    const bare = await run(CONNECTOR, [
      "read",
      "--config",
      config,
      "--format",
      "jsonl",
      "--stream",
      "companies",
    ]);
    expect([bare.code, linesOf(bare.stdout).length]).toEqual([0, 8 - companies.length]);
    const folder = join(await tempDir(), "rows");
    expect((await run(CONNECTOR, ["read", "--config", config, "--output", folder])).code).toBe(0);
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const paths = entries.flatMap((one) => (one.isFile() ? [join(one.parentPath, one.name)] : []));
    const texts = await Promise.all(paths.map((path) => readFile(path, "utf8")));
    expect(texts.join("").match(/"jobTitle"/g)).toHaveLength(left.people);
    expectSilent([bare.stdout, bare.stderr, ...texts], secrets);
    expectSilent([(await run(CONNECTOR, ["discover", "--config", config])).stdout], secrets);
  });

  it("says in check how many entries there are, and refuses before any request what it cannot read", async () => {
    const { sandbox, config } = await held();
    const { stdout } = await run(CONNECTOR, ["check", "--config", config]);
    expect(stdout).toContain("suppress_file holds back 25 entries");
    const before = sandbox.requests.length;
    const inLatin1 = await file("latin1.txt", "");
    await writeFile(inLatin1, Buffer.from("p1\nm\u00fcller@x.example\n", "latin1"));
    for (const suppress_file of ["/nowhere.txt", await file("bad.txt", "p1\na@b\n"), inLatin1]) {
      const bad = await configFor(sandbox, { suppress_file });
      const { code, stdout: said } = await run(CONNECTOR, ["read", "--config", bad]);
      expect([code, said]).toEqual([1, expect.stringMatching(/the suppress_file .*(line 2|no such file)/)]);
      expect(said).toContain('"config_error"');
    }
    expect(sandbox.requests.length).toBe(before);
  });

  const NAMED = "1.example\nperson2@3.example\nperson1@2.example.\n";

  it.each([
    ["of a list", { domains: ["2.example", "www.1.EXAMPLE.", "3.example"] }],
    ["of rows", { from_companies: true }],
  ])(
    "buys nothing for the items %s that it names, and delivers nothing that was bought before",
    async (_, from) => {
      const receipts_file = join(await tempDir(), "receipts.jsonl");
      const options = { companies: 3 };
      const plain = await sandboxStage("company_lookup", from, options, { receipts_file });
      const domains =
        "domains" in from
          ? ["1.example", "2.example", "3.example"]
          : plain.service.companies().map(({ domain }) => domain);
      const [gone = "", ...others] = domains;
      const names = [NAMED, gone, `PERSON1@${others[0]}`].join("\n");
      const suppress_file = await file("suppressed.txt", names);
      const streams = ["company_lookups", "company_lookup_contacts"];
      const stage = await sandboxStage("company_lookup", from, options, { suppress_file });
      const ran = await stage.play({ streams, bought: others });
      await plain.play({ bought: domains });
      const later = await plain.play({
        streams: "company_lookup_contacts",
        config: { suppress_file },
        bought: [],
      });
      const contacts = (run: typeof ran) => run.records().filter(({ position }) => position !== undefined);
      expect(contacts(later).length).toBeGreaterThan(0);
      for (const run of [ran, later]) {
        for (const name of [`"domain":"${gone}"`, `@${gone}`, "person2@3.example", `person1@${others[0]}`])
          expect(run.text).not.toContain(name);
        expect(
          contacts(run).map(({ email, position }) =>
            String(email).startsWith(`person${Number(position) + 1}@`),
          ),
        ).not.toContain(false);
        expect(run.text).toMatch(/\d+ suppressed/);
      }
      expect(
        contacts(later)
          .map(({ email }) => email)
          .toSorted(),
      ).toEqual(
        contacts(ran)
          .map(({ email }) => email)
          .toSorted(),
      );
    },
  );

  it("submits no e-mail of a suppressed person whose row or list names it", async () => {
    const stage = await sandboxStage("email_verification", {
      from_people: true,
      emails: ["x@y.example", "X@Z.example"],
    });
    const [first, second] = stage.service.people().filter(({ email }) => email !== null);
    const suppress_file = await file("suppressed.txt", `${first?.id}\n${second?.email}\nx@z.example`);
    await stage.play({ config: { suppress_file } });
    expect(stage.bought).toContain("x@y.example");
    for (const email of [first?.email, second?.email, "x@z.example"])
      expect(stage.bought).not.toContain(email);
    expect(stage.bought.length).toBeGreaterThan(10);
    await stage.play({ bought: ["x@z.example"], says: "1 submitted" });
  });

  it("lets a truncating run be complete when everybody on the list is suppressed", async () => {
    const suppress_file = await file("suppressed.txt", "1.example");
    const stage = await sandboxStage("company_lookup", { domains: ["1.example"] }, {}, { suppress_file });
    const ids = { generation_id: 2, minimum_generation_id: 2, sync_id: 7 };
    await stage.play({ ids, bought: [], delivered: [], says: '"COMPLETE"' });
  });
});
