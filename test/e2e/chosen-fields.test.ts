import { createHmac } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../../sandbox/server.ts";
import { recordsOf as dataOf, errorsOf, linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { sandboxStage } from "../support/job-stage.ts";
import { listOf, serve } from "../support/serve.ts";
import { discover, expectWithout, recordsOf, schemasOf, selection, tap } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

// A field or a person that is dropped, hashed, not named, deselected or suppressed leaves nowhere: in no row, schema, state, log or summary.

const SALT = "a long random text";
const QUICK = { companies: 8, people: 60, undated: 3 } as const;
const NEW_FIELD = "new-field:path=/people/stream:after=20:times=always";

const rowsOf = (text: string): readonly object[] => linesOf(text).map((line) => JSON.parse(line));

const digest = (text: unknown): string | null =>
  text === null ? null : createHmac("sha256", SALT).update(String(text), "utf8").digest("hex");

/** Rows, whatever the order of their fields. */
const textsOf = (rows: readonly object[]): Set<string> =>
  new Set(rows.map((row) => JSON.stringify(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)))));

const STREAMS = ["people", "companies", "sources"] as const;
type Stream = (typeof STREAMS)[number];
type Rows = Readonly<Record<Stream, readonly object[]>>;

const rowsBy = (of: (stream: Stream) => readonly object[]): Rows => ({
  people: of("people"),
  companies: of("companies"),
  sources: of("sources"),
});

type Left = { readonly rows: Rows; readonly texts: readonly string[] };

/** Runs a config in each language, and returns its rows and all else that is written. */
const LANGUAGES: Readonly<Record<string, (config: string) => Promise<Left>>> = {
  "Airbyte's language": async (config) => {
    const summary = join(await tempDir(), "summary.json");
    const { code, messages, stdout, stderr } = await connector(["read", "-c", config, "--summary", summary]);
    expect(code, stdout.slice(-2_000)).toBe(0);
    const discovered = await run(CONNECTOR, ["discover", "--config", config]);
    const texts = [stdout, stderr, discovered.stdout, await readFile(summary, "utf8")];
    return { rows: rowsBy((stream) => dataOf(messages, stream)), texts };
  },
  "Singer's language": async (config) => {
    const { messages, logs } = await tap(["--config", config]);
    const catalog = await discover(config);
    const texts = [messages, logs, catalog].map((value) => JSON.stringify(value));
    return { rows: rowsBy((stream) => recordsOf(messages, stream).map(({ record }) => record ?? {})), texts };
  },
  "JSON lines": async (config) => {
    const texts: string[] = [];
    const rows = new Map<Stream, readonly object[]>();
    for (const stream of STREAMS) {
      const ended = await run(CONNECTOR, ["read", "-c", config, "--format", "jsonl", "--stream", stream]);
      expect(ended.code, ended.stderr).toBe(0);
      texts.push(ended.stdout, ended.stderr);
      rows.set(stream, rowsOf(ended.stdout));
    }
    return { rows: rowsBy((stream) => rows.get(stream) ?? []), texts };
  },
  files: async (config) => {
    const folder = join(await tempDir(), "rows");
    const ended = await run(CONNECTOR, ["read", "--config", config, "--output", folder]);
    expect(ended.code, ended.stderr).toBe(0);
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const paths = entries.flatMap((one) => (one.isFile() ? [join(one.parentPath, one.name)] : []));
    const texts = await Promise.all(paths.map((path) => readFile(path, "utf8")));
    const of = (stream: Stream): readonly object[] =>
      texts.filter((_, nth) => paths[nth]?.includes(`/${stream}/`)).flatMap(rowsOf);
    return { rows: rowsBy(of), texts: [...texts, ended.stdout, ended.stderr] };
  },
};

type Situation = {
  readonly settings: (sandbox: Sandbox) => object | Promise<object>;
  readonly left: (sandbox: Sandbox) => Rows;
  /** Values that may be in no text. */
  readonly secrets: (sandbox: Sandbox) => readonly unknown[];
};

const EVERY_THIRD = (_: unknown, nth: number): boolean => nth % 3 === 0;

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "dropped and hashed fields": {
    settings: () => ({
      drop_fields: ["lastName", "companies.headquarters.city", "engagement"],
      hash_fields: ["email", "people.id", "companies.employeeCount", "sources.slug"],
      hash_salt: SALT,
    }),
    left: (sandbox) => ({
      people: sandbox.people().map(({ lastName: _, ...row }) => {
        return { ...row, id: digest(row.id), email: digest(row.email) };
      }),
      companies: sandbox.companies().map(({ employeeCount, headquarters, ...row }) => {
        const { city: _, ...rest } = { city: null, ...(headquarters as object | null) };
        return { ...row, employeeCount: digest(employeeCount), headquarters: headquarters && rest };
      }),
      sources: sandbox.sources().map((row) => ({ ...row, slug: digest(row.slug) })),
    }),
    secrets: (sandbox) => [
      ...sandbox.people().flatMap(({ id, email }) => [id, email]),
      '"engagement":',
      SALT,
    ],
  },
  "fields that only_fields does not name": {
    settings: () => ({ only_fields: ["people.email", "people.companySize", "companies.headquarters.city"] }),
    left: (sandbox) => ({
      people: sandbox.people().map(({ id, email, companySize, discoveredAt }) => {
        return { id, email, companySize, discoveredAt };
      }),
      companies: sandbox.companies().map(({ domain, discoveredAt, headquarters }) => {
        const { city } = { city: null, ...(headquarters as object | null) };
        const dates = discoveredAt === undefined ? {} : { discoveredAt };
        return { domain, ...dates, headquarters: headquarters && { city } };
      }),
      sources: sandbox.sources(),
    }),
    secrets: (sandbox) => [...sandbox.people().map(({ linkedinUrl }) => linkedinUrl), "engagement"],
  },
  "suppressed people and companies": {
    settings: async (sandbox) => {
      const people = sandbox.people().filter(EVERY_THIRD);
      const names = people.map(({ id, email }, nth) =>
        email === null || nth % 2 === 0 ? id : ` ${email.toUpperCase()}.`,
      );
      const companies = sandbox.companies().filter(EVERY_THIRD);
      const lines = [...names, ...companies.map(({ domain }) => domain)];
      return { drop_fields: ["engagement"], suppress_file: await file("suppressed.txt", lines.join("\n")) };
    },
    left: (sandbox) => ({
      people: sandbox.people().filter((_, nth) => !EVERY_THIRD(_, nth)),
      companies: sandbox.companies().filter((_, nth) => !EVERY_THIRD(_, nth)),
      sources: sandbox.sources(),
    }),
    secrets: (sandbox) => {
      const [people, companies] = [sandbox.people(), sandbox.companies()];
      const domains = companies.filter(EVERY_THIRD).map(({ domain }) => `"domain":"${domain}"`);
      return [...people.filter(EVERY_THIRD).flatMap(({ id, email }) => [id, email]), ...domains];
    },
  },
};

describe.each(Object.entries(SITUATIONS))("%s", (_, { settings, left, secrets }) => {
  it.each(Object.entries(LANGUAGES))("leave in no row and no other text in %s", async (_language, play) => {
    const { sandbox } = await sandboxWith({ ...QUICK, faults: [NEW_FIELD] });
    const { rows, texts } = await play(await configFor(sandbox, await settings(sandbox)));
    for (const stream of STREAMS) {
      expect(textsOf(rows[stream])).toEqual(textsOf(left(sandbox)[stream]));
      expect(rows[stream]).toHaveLength(left(sandbox)[stream].length);
    }
    const told = secrets(sandbox).filter(
      (secret) => secret !== null && texts.join().includes(String(secret)),
    );
    expect(told).toEqual([]);
    expect(texts.join("")).not.toContain("differ from its schema");
  });
});

describe("a setting that cannot be obeyed", () => {
  it.each<[settings: object, why: string, requests: "none" | "some"]>([
    [{ drop_fields: ["people.id"] }, 'drop_fields "people.id" names the primary key', "none"],
    [{ drop_feilds: ["email"] }, 'drop_feilds is not a setting. Did you mean "drop_fields"?', "none"],
    [{ suppress_file: "/nowhere.txt" }, 'Cannot read the suppress_file "/nowhere.txt"', "none"],
    [{ drop_fields: ["emial"] }, 'a field that no stream of this account has. Did you mean "email"?', "some"],
  ])("lets no row out and fails every command: %j", async (settings, why, requests) => {
    const { sandbox, config } = await sandboxWith(QUICK, settings);
    for (const [program, words] of [
      [CONNECTOR, ["check", "--exit-code"]],
      [CONNECTOR, ["discover"]],
      [CONNECTOR, ["read"]],
      [CONNECTOR, ["read", "--format", "jsonl", "--stream", "people"]],
      [TAP, []],
    ] as const) {
      const { code, stdout, stderr } = await run(program, [...words, "--config", config]);
      expect([words, code]).toEqual([words, words.includes("jsonl" as never) ? 2 : 1]);
      expect(`${stdout}${stderr}`.replaceAll('\\"', '"')).toContain(why);
      expect(stdout).not.toContain("@");
    }
    expect(sandbox.requests.length > 0).toBe(requests === "some");
  });
});

describe("a catalog", () => {
  const HASHED = { hash_fields: ["companies.employeeCount"], drop_fields: ["lastName"], hash_salt: SALT };

  it("of Airbyte with a number for a hashed field fails the stream before any row", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const { stdout } = await run(CONNECTOR, ["discover", "--config", config]);
    const { streams: found } = JSON.parse(stdout).catalog;
    const streams = found.map((stream: object) => ({ stream, sync_mode: "full_refresh" }));
    const words = ["--catalog", await file("catalog.json", { streams })];
    const hashed = await configFor(sandbox, HASHED);
    const { code, messages } = await connector(["read", "--config", hashed, ...words]);
    const message = expect.stringContaining('the catalog types "employeeCount"');
    expect([code, dataOf(messages, "companies"), errorsOf(messages)]).toMatchObject([1, [], [{ message }]]);
  });

  it("of Singer with a number for a hashed field fails the stream, and names dropped fields", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const before = await selection(await discover(config), ["people", "companies"]);
    const args = ["--config", await configFor(sandbox, HASHED), "--catalog", before];
    const { messages, logs } = await tap(args, { exits: 1 });
    expect(recordsOf(messages, "companies")).toEqual([]);
    expectWithout(messages, "people", "lastName");
    expect(schemasOf(messages, "people")[0]?.schema?.properties).not.toHaveProperty("lastName");
    expect(JSON.stringify(logs)).toMatch(/catalog of \\"people\\" names \\"lastName\\"/);
    expect(logs.at(-1)?.message).toMatch(/"companies": the catalog types "employeeCount" .*Discover again/);
  });

  it("withholds deselected, unnamed and new fields in Singer's language, nested ones too, and says so", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, faults: [NEW_FIELD] });
    const catalog = await discover(config);
    for (const { schema } of catalog.streams) delete schema.properties?.["jobTitle"];
    const chosen = await selection(catalog, ["people", "companies"], {
      ...{ "people.email": false, "people.id": false, "people.discoveredAt": false },
      "companies.headquarters.city": false,
    });
    const { messages, logs } = await tap(["--config", config, "--catalog", chosen]);
    expectWithout(messages, "people", "email", "jobTitle", "engagement");
    expectWithout(messages, "companies", "headquarters.city");
    for (const { record } of recordsOf(messages, "people")) expect(record).toHaveProperty("discoveredAt");
    expect(recordsOf(messages, "people")).toHaveLength(sandbox.people().length);
    expect(schemasOf(messages, "people")).toHaveLength(1);
    const [companies] = schemasOf(messages, "companies");
    expect(companies?.schema?.properties).toHaveProperty("headquarters.properties.country");
    expect(companies?.schema?.properties).not.toHaveProperty("headquarters.properties.city");
    const warnings = logs.flatMap(({ level, message }) => (level === "warning" ? [message] : [])).join("\n");
    expect(warnings).toMatch(
      /"people" have fields .* removed: "jobTitle", "engagement"\..*refresh-catalog.*by hand/,
    );
    expect(warnings).not.toContain('"email"');
  });
});

it("names that no catalog can have are withheld in Singer's language, and no message advises to discover again", async () => {
  const row = { slug: "a", Name: 1, name: 2, "": 3, constructor: 4, "x.y": 5, in: { k: 6, K: 7 } };
  const rows = [{ ...row, ...JSON.parse('{"__proto__":8}') }];
  const { url } = await serve(({ url: path = "" }, response) => {
    const isSources = path.startsWith("/api/v1/public/sources");
    response.end(path.includes("/stream") ? "" : listOf(isSources ? 1 : 0, isSources ? rows : []));
  });
  const config = await file("config.json", { base_url: url, api_key: "k", requests_per_minute: 6000 });
  const message = /"sources" have fields that no catalog can name: .*read --output/;
  const chosen = await selection(await discover(config), ["sources"]);
  for (const [catalog, names] of [
    [[], '"Name", "", "__proto__"'],
    [["--catalog", chosen], '"Name", "", "in.K", "__proto__"'],
  ] as const) {
    const { messages, logs } = await tap(["--config", config, ...catalog]);
    const [record] = recordsOf(messages, "sources").map(({ record: fields }) => fields);
    expect(Object.keys(record ?? {})).toEqual(["slug", "name", "constructor", "x.y", "in"]);
    const said = logs.flatMap(({ level, message: text }) => (level === "warning" ? [text] : []));
    expect(said).toEqual([expect.stringMatching(message)]);
    expect(said[0]).toContain(`${names}. `);
  }
  const platform = await connector(["read", "--config", config, "--stream", "sources"]);
  expect(platform.stdout).not.toContain("differ from its schema");
});

describe("a suppressed person", () => {
  it("is counted as shown, in the summary and the next run", async () => {
    const { sandbox } = await sandboxWith(QUICK);
    const dated = sandbox.people().filter(({ discoveredAt }) => discoveredAt !== null);
    const named = dated.slice(0, 20);
    const suppress_file = await file("suppressed.txt", named.map(({ id }) => id).join("\n"));
    const config = await configFor(sandbox, { suppress_file });
    expect((await run(CONNECTOR, ["check", "-c", config])).stdout).toContain("suppresses 20 entries");
    const first = await connector(["read", "--config", config]);
    expect(first.stdout).toContain("43 rows, 20 suppressed");
    const states = first.messages.flatMap(({ state }) => (state === undefined ? [] : [state]));
    const again = await connector(["read", "-c", config, "--state", await file("state.json", states)]);
    expect([again.code, first.code]).toEqual([0, 0]);
  });

  it.each([
    ["a list", { domains: ["2.example", "www.1.EXAMPLE.", "3.example"] }, "1.example"],
    ["rows", { from_companies: true }, ""],
  ])("is not looked up from %s, and is in no contact that was bought before", async (_, from, listed) => {
    const options = { companies: 3 };
    const receipts_file = join(await tempDir(), "receipts.jsonl");
    const stage = await sandboxStage("company_lookup", from, options, { receipts_file });
    const rows = stage.service.companies().map(({ domain }) => domain);
    const [gone = "", ...others] = listed === "" ? rows : [listed, "2.example", "3.example"];
    const suppress_file = await file("suppressed.txt", `${gone}\nPERSON1@${others[0]}`);
    await stage.play({ bought: [gone, ...others] });
    const fresh = await sandboxStage("company_lookup", from, options, { suppress_file });
    const streams = ["company_lookups", "company_lookup_contacts"];
    for (const ran of [
      await stage.play({ streams: "company_lookup_contacts", config: { suppress_file }, bought: [] }),
      await fresh.play({ streams, bought: others }),
    ]) {
      expect(ran.records().filter(({ email }) => email !== undefined).length).toBeGreaterThan(0);
      for (const name of [`"domain":"${gone}"`, `@${gone}`, `person1@${others[0]}`])
        expect(ran.text).not.toContain(name);
      expect(ran.text).toMatch(/\d+ suppressed/);
    }
  });

  it("is not verified from a list or from rows", async () => {
    const settings = { from_people: true, emails: ["x@y.example", "X@Z.example"] };
    const stage = await sandboxStage("email_verification", settings);
    const [first, second] = stage.service.people().filter(({ email }) => email !== null);
    const suppress_file = await file("suppressed.txt", `${first?.id}\n${second?.email}\nx@z.example`);
    await stage.play({ config: { suppress_file } });
    expect(stage.bought).toContain("x@y.example");
    for (const email of [first?.email, second?.email, "x@z.example"])
      expect(stage.bought).not.toContain(email);
    await stage.play({});
    expect(stage.bought).toContain("x@z.example");
  });

  it("does not make a refresh incomplete, even if everyone on the list is suppressed", async () => {
    const suppress_file = await file("suppressed.txt", "1.example");
    const stage = await sandboxStage("company_lookup", { domains: ["1.example"] }, {}, { suppress_file });
    const ids = { generation_id: 2, minimum_generation_id: 2, sync_id: 7 };
    await stage.play({ ids, bought: [], delivered: [], says: '"COMPLETE"' });
  });
});

it("only_fields applies to look-ups and their contacts", async () => {
  const only_fields = ["company_lookups.contacts.first_name", "company_lookup_contacts.job_title"];
  const stage = await sandboxStage("company_lookup", { domains: ["2.example"] }, {}, { only_fields });
  const streams = ["company_lookups", "company_lookup_contacts"];
  const ran = await stage.play({ streams, bought: ["2.example"] });
  expect(ran.records().map((row) => Object.keys(row).toSorted())).toEqual([
    ["contacts", "created_at", "job_id"],
    ...[0, 1].map(() => ["created_at", "job_id", "job_title", "position"]),
  ]);
  expect(ran.records()[0]?.["contacts"]).toEqual([{ first_name: "First1" }, { first_name: "First2" }]);
  expect(ran.text).not.toMatch(/person1@|Last\d/);
});
