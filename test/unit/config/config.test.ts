import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { serviceUrl } from "../../../src/config/address.ts";
import { type Config, parseConfig, secretsOf } from "../../../src/config/config.ts";
import { TAP_PREFIXES } from "../../../src/config/environment.ts";
import { normalize } from "../../../src/config/normalize.ts";
import { loadSpec } from "../../../src/config/spec.ts";
import { readSuppression } from "../../../src/config/suppress.ts";
import { ConfigError } from "../../../src/errors.ts";

const KEY = "svc_0123abcd_0123456789abcdef0123456789abcdef";
const account = { base_url: "https://contacts.example.com", api_key: KEY };
const external = { api_url: "https://external.example.com", api_key: "ext_key" };

/** A config of an account with further settings. */
const configOf = (settings: object): Config => parseConfig({ ...account, ...settings }, {});

/** What a config says, without where it says it. */
function settingsOf(value: unknown): unknown {
  const { warnings: _warnings, origins: _origins, ...settings } = parseConfig(value, {});
  return settings;
}

/** The message that a config is refused with. */
function refusal(value: unknown, environment: Record<string, string | undefined> = {}): string {
  try {
    parseConfig(value, environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return String((error as Error).message);
  }
  throw new Error("The config was accepted");
}

/** The message that an account's config is refused with for further settings. */
const refused = (settings: object): string => refusal({ ...account, ...settings });

describe("parseConfig()", () => {
  it("fills every default", () => {
    expect(parseConfig(account, {})).toEqual({
      baseUrl: new URL("https://contacts.example.com"),
      apiKey: KEY,
      startDate: null,
      endDate: null,
      sourceSlug: null,
      isUser: "all",
      lookbackWindowDays: 1,
      maxWindowRows: 250_000,
      numWorkers: 2,
      requestsPerMinute: 60,
      maxRunSeconds: null,
      verifyCounts: true,
      ignoreMissingDays: [],
      allowInsecureHttp: false,
      onlyFields: [],
      ...{ suppressFile: null, suppressed: readSuppression(null), proofStream: false },
      dropFields: [],
      hashFields: [],
      hashSalt: null,
      receiptsFile: null,
      idleTimeoutSeconds: 60,
      emitActivateVersionMessages: false,
      endpoints: {
        companies: "/api/v1/public/companies",
        sources: "/api/v1/public/sources",
        emailCheck: "/api/v1/public/verify",
      },
      externalApi: null,
      companyLookup: null,
      emailVerification: null,
      emailCheck: null,
      warnings: [],
      origins: new Map([
        ["base_url", "the config"],
        ["api_key", "the config"],
      ]),
    });
  });

  it("takes nulls, empty strings, empty lists and objects of defaults for absent", () => {
    const form = {
      ...account,
      start_date: null,
      end_date: "",
      source_slug: "  ",
      ignore_missing_days: [],
      external_api: { api_url: "", api_key: null },
      company_lookup: {
        domains: [],
        from_companies: false,
        max_credits_per_sync: 100,
        max_wait_seconds: 300,
      },
      email_verification: { emails: [""], retry_unknown: false },
      email_check: {},
      endpoints: { companies: "/api/v1/public/companies" },
    };
    expect(settingsOf(form)).toEqual(settingsOf(account));
  });

  it("ignores settings that it does not know, with a warning", () => {
    const config = configOf({ colour: "red", max_workers: 4 });
    expect(settingsOf({ ...account, colour: "red" })).toEqual(settingsOf(account));
    expect(config.warnings).toEqual([
      'Unknown setting "colour". It has no effect',
      'Unknown setting "max_workers". Did you mean "num_workers"?',
    ]);
  });

  it.each([
    [{ drop_feilds: ["email"] }, "drop_feilds", "drop_fields"],
    [{ startDate: "2026-01-01" }, "startDate", "start_date"],
    [
      { company_lookup: { domains: ["a.com"], max_lookup_per_sync: 5 } },
      "company_lookup.max_lookup_per_sync",
      "company_lookup.max_lookups_per_sync",
    ],
  ])("refuses a setting that is two letters or less from a known one: %j", (settings, name, meant) => {
    expect(refused(settings)).toContain(`${name} is not a setting. Did you mean "${meant}"?`);
  });

  it("names the similar setting that is there when a required one is missing", () => {
    expect(refusal({ baseUrl: "https://host", api_kye: "hunter2" })).toBe(
      'Cannot use the config: base_url is missing: rename "baseUrl" to "base_url"; api_key is missing: rename "api_kye" to "api_key"',
    );
    expect(refused({ external_api: { url: "https://x", api_key: "k", "api-url": "y" } })).toContain(
      'external_api.api_url is missing: rename "external_api.api-url" to "external_api.api_url"',
    );
  });

  it("refuses a config that is nested too deep, wherever it comes from", () => {
    const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    const message = "Cannot use the config: it is nested more than 100 levels deep";
    expect(refused({ colour: JSON.parse(deep) })).toBe(message);
    expect(refusal(account, { CONTACT_INTELLIGENCE_ENDPOINTS: deep })).toBe(message);
  });

  it("reads jobs, with their items trimmed and each at its place, by which messages name it", () => {
    const domains = [" Acme.com", "acme.COM", "b.org"];
    const { companyLookup, emailVerification, emailCheck, externalApi } = configOf({
      external_api: external,
      company_lookup: { domains, webhook_url: "https://hook.example.com/x" },
      email_verification: { emails: ["A@b.com"], refresh_after_days: 30 },
      email_check: { emails: ["a@B.com ", "a@b.com"], max_wait_seconds: 0, retry_unknown: true },
    });
    expect(externalApi).toEqual({ apiUrl: new URL("https://external.example.com"), apiKey: "ext_key" });
    expect(companyLookup).toEqual({
      domains: ["Acme.com", "acme.COM", "b.org"],
      domainsFile: null,
      fromCompanies: false,
      fromPeople: false,
      maxCreditsPerSync: 100,
      maxCreditsPerDay: null,
      maxCreditsPerMonth: null,
      maxLookupsPerSync: 100,
      refreshAfterDays: null,
      maxWaitSeconds: 300,
      webhookUrl: "https://hook.example.com/x",
      retryUnknown: false,
    });
    const common = { emailsFile: null, fromPeople: false, maxPerSync: 1000, maxPerDay: null };
    const verified = { emails: ["A@b.com"], refreshAfterDays: 30, retryUnknown: false };
    expect(emailVerification).toEqual({ ...common, ...verified });
    const emails = ["a@B.com", "a@b.com"];
    const checked = { emails, refreshAfterDays: null, maxWaitSeconds: 0, retryUnknown: true };
    expect(emailCheck).toEqual({ ...common, ...checked });
  });

  it.each<[settings: object, expected: object]>([
    [{ is_user: true }, { isUser: "true" }],
    [{ is_user: false }, { isUser: "false" }],
    [{ is_user: "True" }, { isUser: "true" }],
    [{ is_user: "all" }, { isUser: "all" }],
    [{ start_date: "2026-02-01", end_date: "2026-02-01" }, { endDate: "2026-02-01" }],
    [
      { base_url: "http://contacts.internal", allow_insecure_http: true },
      { baseUrl: { protocol: "http:", host: "contacts.internal" } },
    ],
    [{ api_key: ` ${KEY}\n` }, { apiKey: KEY }],
    [{ api_key: "x" }, { apiKey: "x" }],
    [{ email_check: { emails: ["a@b.com"] } }, { externalApi: null, emailCheck: { emails: ["a@b.com"] } }],
    [
      { email_check: { emails: " a@b.com, C@d.com\n\nE@f.com\r\n" } },
      { emailCheck: { emails: ["a@b.com", "C@d.com", "E@f.com"] } },
    ],
    [{ email_check: { from_people: true } }, { emailCheck: { fromPeople: true } }],
    // An empty receipts file means none; another may be set or not.
    [{ receipts_file: "" }, { receiptsFile: "" }],
    [{ receipts_file: null }, { receiptsFile: null }],
    [{ receipts_file: " /data/r.jsonl " }, { receiptsFile: "/data/r.jsonl" }],
    [
      { hash_fields: ["email"], hash_salt: "pepper" },
      { hashFields: ["email"], hashSalt: "pepper" },
    ],
    ...[
      "http://localhost:8080",
      "http://api.localhost/x",
      "http://127.9.8.7",
      "http://localhost.:81/",
      "http://[::1]:80/",
      "https://host/path/",
    ].map((base_url): [object, object] => [{ base_url }, { baseUrl: { host: new URL(base_url).host } }]),
    ...[
      ["2026-01-02", "2026-01-02"],
      ["2026-01-02T00:00:00Z", "2026-01-02"],
      ["2026-01-02T23:30:00-05:00", "2026-01-03"],
      ["2026-01-02 10:00:00", "2026-01-02"],
      [" 2026-01-02T01:00:00.123456+02:00 ", "2026-01-01"],
    ].map(([given, day]): [object, object] => [
      { start_date: given, ignore_missing_days: [given, day] },
      { startDate: day, ignoreMissingDays: [day] },
    ]),
  ])("takes %j", (settings, expected) => {
    expect(configOf(settings)).toMatchObject(expected);
  });

  it.each<[job: string, input: object, expected: object]>([
    ["company_lookup", { from_companies: true }, { companyLookup: { domains: [], fromCompanies: true } }],
    ["company_lookup", { domains_file: "domains.txt" }, { companyLookup: { domainsFile: "domains.txt" } }],
    ["company_lookup", { from_people: true }, { companyLookup: { fromPeople: true } }],
    ["email_verification", { emails_file: "e.csv" }, { emailVerification: { emailsFile: "e.csv" } }],
  ])("takes %s with %j as its only input", (job, input, expected) => {
    expect(configOf({ external_api: external, [job]: input })).toMatchObject(expected);
  });

  it("takes start_date as days ago, and no other day", () => {
    const today = Date.parse(new Date().toISOString().slice(0, 10));
    expect(
      [today, today + 86_400_000].map((day) => new Date(day - 30 * 86_400_000).toISOString().slice(0, 10)),
    ).toContain(configOf({ start_date: " 30d " }).startDate);
    expect(() => configOf({ end_date: "30d" })).toThrow("end_date must be a date that exists");
  });

  it.each<[settings: object, ...words: string[]]>([
    ...["2026-02-30", "2025-02-29", "2026-13-01", "2026-01-02Tnoon", "0000-01-01"].map(
      (day): [object, ...string[]] => [
        { start_date: day, ignore_missing_days: [day] },
        ...["start_date must be a date that exists", "ignore_missing_days[0] must be"],
      ],
    ),
    ...["yesterday", "01/02/2026", "2026-1-2", "Jan 2, 2026"].map((end_date): [object, string] => [
      { end_date },
      `end_date must be a date that exists, YYYY-MM-DD or a date-time, not "${end_date}"`,
    ]),
    [{ start_date: "2026-02-02", end_date: "2026-02-01" }, "not be after end_date"],
    ...["two words", "line\nbreak", "null\0byte", "ключ", "🔑"].map((key): [object, ...string[]] => [
      { api_key: key, external_api: { ...external, api_key: key } },
      ...["api_key must look like this: the key alone", "external_api.api_key must"],
    ]),
    ...["company_lookup", "email_verification"].flatMap((job): [object, ...string[]][] => {
      const items = { domains: ["a.com"], emails: ["a@b.com"] };
      const variable = "CONTACT_INTELLIGENCE_EXTERNAL_API__API_URL";
      return [
        [{ [job]: items }, `${job} needs external_api`],
        [
          { [job]: items, external_api: { api_key: "k" } },
          `external_api.api_url is missing: set it in the config or as ${variable}`,
        ],
      ];
    }),
    ...[{ from_companies: true }, { mails: ["a@b.com"] }].map((email_check): [object, string] => [
      { email_check },
      "email_check has nothing to work on",
    ]),
    [{ hash_fields: ["email"] }, "hash_salt is missing: hash_fields needs it"],
  ])("refuses %j", (settings, ...words) => {
    for (const word of words) expect(refused(settings)).toContain(word);
  });

  it("quotes no secret that was pasted into a date, nor what cannot be one", () => {
    expect(refused({ api_key: "sesame", end_date: "sesame" })).not.toContain("sesame");
    expect(refused({ api_key: "open-sesame-1", end_date: "sesame" })).not.toContain("sesame");
    expect(refused({ end_date: KEY })).not.toContain("0123abcd");
  });

  it.each([
    ["http://contacts.example.com", "allow_insecure_http"],
    ["http://127.0.0.1.example.com", "allow_insecure_http"],
    ["http://localhost.example.com", "allow_insecure_http"],
    ["ftp://host", "must look like this"],
    ["contacts.example.com", "must look like this"],
    ["https://user:hunter2@host", "user name or password"],
    ["https://host/?key=hunter2", "query or a fragment"],
    ["https://host/#hunter2", "query or a fragment"],
    ["https://host?", "query or a fragment"],
    ["https://", "must look like this"],
    ["https://ho st/hunter2", "must look like this"],
  ])("refuses the address %s", (address, why) => {
    const message = refusal({
      ...account,
      base_url: address,
      external_api: { ...external, api_url: address },
    });
    expect(message).toContain("base_url must");
    expect(message).toContain("external_api.api_url must");
    expect(message).toContain(why);
    expect(message).not.toContain("hunter2");
  });

  it.each([
    ["api_key", 1_000, (text: string) => ({ api_key: text })],
    ["external_api.api_key", 1_000, (text: string) => ({ external_api: { ...external, api_key: text } })],
    ["hash_salt", 1_000, (text: string) => ({ hash_salt: text })],
    [
      "company_lookup.webhook_url",
      2_000,
      (text: string) => ({
        external_api: external,
        company_lookup: { domains: ["a.example"], webhook_url: `https://${text.slice(8)}` },
      }),
    ],
  ])(
    "refuses a secret in %s that is too long to be searched for in every message",
    (name, most, settings) => {
      expect(() => configOf({ ...settings("x".repeat(most)) })).not.toThrow();
      const message = refused({ ...settings("x".repeat(most + 1)) });
      expect(message).toContain(`${name} must be at most ${most} characters long`);
      expect(message).not.toContain("xxx");
    },
  );

  it("says all that is wrong in one message, each property once", () => {
    const message = refusal({
      base_url: "ftp://x",
      num_workers: 9,
      lookback_window_days: 0,
      max_window_rows: "many",
      is_user: "maybe",
      start_date: "2026-02-30",
      company_lookup: { domains: ["not a domain"] },
      email_check: { refresh_after_days: 3 },
      email_verification: [],
    });
    expect(message).toMatch(/^Cannot use the config: /);
    for (const clause of [
      "api_key is missing: set it in the config or as CONTACT_INTELLIGENCE_API_KEY",
      "base_url must look like this: https://host or https://host/path",
      "num_workers must be at most 8, not 9",
      "lookback_window_days must be at least 1, not 0",
      "max_window_rows must be an integer, not a string",
      'is_user must be one of "all", "true", "false"',
      'start_date must be a date that exists, YYYY-MM-DD or a date-time, not "2026-02-30"',
      "company_lookup needs external_api",
      "email_check has nothing to work on: set one of emails, emails_file, from_people, or remove email_check",
    ]) {
      expect(message.split(clause), clause).toHaveLength(2);
    }
  });

  it.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
    "ignores the unknown setting %s",
    (name) => {
      const config = JSON.parse(
        `{"base_url": "https://host", "api_key": "k", "${name}": {"x": 1}, "endpoints": {"${name}": "/x"}}`,
      );
      const { warnings } = parseConfig(config, {});
      expect(settingsOf(config)).toEqual(settingsOf({ base_url: "https://host", api_key: "k" }));
      expect(warnings).toEqual([
        `Unknown setting "${name}". It has no effect`,
        `Unknown setting "endpoints.${name}". It has no effect`,
      ]);
    },
  );

  it.each([[[]], ["text"], [7], [true]])("refuses %j, which is no object", (value) => {
    expect(refusal(value)).toContain("not an object of properties");
  });

  it("never says a secret's value, whatever else is wrong", () => {
    const secret = fc.stringMatching(/^hunter2[!-~ \n]{0,20}$/);
    const anything = fc.oneof(fc.jsonValue(), secret, fc.constant(undefined));
    fc.assert(
      fc.property(secret, secret, anything, anything, (key, hook, url, users) => {
        const message = refusal({
          base_url: url,
          api_key: key,
          is_user: users,
          start_date: key,
          end_date: "2026-01-01",
          source_slug: [key],
          external_api: { api_url: users, api_key: { inner: key } },
          company_lookup: { domains: [key], webhook_url: hook },
          num_workers: key,
        });
        expect(message.toLowerCase()).not.toContain("hunter2");
      }),
    );
  });
});

describe("parseConfig() from the environment", () => {
  const environment = {
    CONTACT_INTELLIGENCE_BASE_URL: "https://env.example.com",
    CONTACT_INTELLIGENCE_API_KEY: "env_key",
  };

  it("needs no config when the environment says all that is required", () => {
    const config = parseConfig(undefined, environment);
    expect([config.baseUrl.host, config.apiKey]).toEqual(["env.example.com", "env_key"]);
  });

  it("lets the environment win, but not with an empty variable", () => {
    const config = parseConfig(account, { ...environment, CONTACT_INTELLIGENCE_API_KEY: " " });
    expect([config.baseUrl.host, config.apiKey]).toEqual(["env.example.com", KEY]);
  });

  it("says of each setting where it comes from", () => {
    const { origins } = parseConfig(
      { ...account, external_api: { ...external, api_key: "x" }, num_workers: 3 },
      {
        CONTACT_INTELLIGENCE_API_KEY: "env_key",
        CONTACT_INTELLIGENCE_NUM_WORKERS: " ",
        CONTACT_INTELLIGENCE_EXTERNAL_API: '{"api_url": "https://x", "api_key": "y"}',
        CONTACT_INTELLIGENCE_EXTERNAL_API__API_URL: "https://y",
      },
      'the config file "c.json"',
    );
    expect([...origins]).toEqual([
      ["base_url", 'the config file "c.json"'],
      ["api_key", "the environment variable CONTACT_INTELLIGENCE_API_KEY"],
      ["external_api", "the environment variable CONTACT_INTELLIGENCE_EXTERNAL_API"],
      ["external_api.api_url", "the environment variable CONTACT_INTELLIGENCE_EXTERNAL_API__API_URL"],
      ["external_api.api_key", "the environment variable CONTACT_INTELLIGENCE_EXTERNAL_API"],
      ["num_workers", 'the config file "c.json"'],
    ]);
  });

  it("refuses misspelt variables, warns of those that are nearly settings, and leaves those of other programs alone", () => {
    const typos = {
      CONTACT_INTELLIGENCE_DROP_FEILDS: "email",
      CONTACT_INTELLIGENCE_EXTERNAL_API__APIKEY: "x",
    };
    const is = "is not a setting. Did you mean";
    expect(() => parseConfig(account, typos)).toThrow(
      `Cannot use the environment: the environment variable CONTACT_INTELLIGENCE_DROP_FEILDS ${is} "CONTACT_INTELLIGENCE_DROP_FIELDS"?; ` +
        `the environment variable CONTACT_INTELLIGENCE_EXTERNAL_API__APIKEY ${is} "CONTACT_INTELLIGENCE_EXTERNAL_API__API_KEY"?`,
    );
    const { warnings } = parseConfig(account, {
      CONTACT_INTELLIGENCE_MAX_WORKERS: "4",
      CONTACT_INTELLIGENCE_SERVICE_HOST: "10.0.0.1",
      CONTACT_INTELLIGENCE_PORT_80_TCP: "tcp://10.0.0.1:80",
      CONTACT_INTELLIGENCE_START_DATE: "",
    });
    expect(warnings).toEqual([
      'Unknown environment variable "CONTACT_INTELLIGENCE_MAX_WORKERS". Did you mean CONTACT_INTELLIGENCE_NUM_WORKERS?',
    ]);
  });

  it.each([
    ["a", true],
    ["password", true],
    ["\u{1f9c2}".repeat(15), true],
    ["0123456789abcdef", false],
  ])("warns of a hash_salt that is easily guessed, and does not say it: %j", (hash_salt, isShort) => {
    const { warnings, hashSalt } = configOf({ hash_fields: ["email"], hash_salt });
    expect(hashSalt).toBe(hash_salt);
    const text =
      "hash_salt has less than 16 characters, so that its hashes can be undone by guessing. Choose a longer one";
    expect(warnings).toEqual(isShort ? [expect.stringContaining(text)] : []);
  });

  it("casts by the spec's types", () => {
    const config = parseConfig(account, {
      CONTACT_INTELLIGENCE_NUM_WORKERS: "4",
      CONTACT_INTELLIGENCE_VERIFY_COUNTS: "False",
      CONTACT_INTELLIGENCE_ALLOW_INSECURE_HTTP: "1",
      CONTACT_INTELLIGENCE_IS_USER: "true",
      CONTACT_INTELLIGENCE_SOURCE_SLUG: "123",
      CONTACT_INTELLIGENCE_IGNORE_MISSING_DAYS: "2026-01-02, 2026-01-01",
      CONTACT_INTELLIGENCE_EXTERNAL_API__API_URL: "https://external.example.com",
      CONTACT_INTELLIGENCE_EXTERNAL_API__API_KEY: "ext",
      CONTACT_INTELLIGENCE_EMAIL_CHECK__EMAILS: '["a@b.com"]',
      CONTACT_INTELLIGENCE_COMPANY_LOOKUP: '{"domains": ["a.com"], "max_credits_per_sync": 3}',
      CONTACT_INTELLIGENCE_COMPANY_LOOKUP__MAX_CREDITS_PER_SYNC: "5",
    });
    expect(config).toMatchObject({
      numWorkers: 4,
      verifyCounts: false,
      allowInsecureHttp: true,
      isUser: "true",
      sourceSlug: "123",
      ignoreMissingDays: ["2026-01-01", "2026-01-02"],
      externalApi: { apiKey: "ext" },
      emailCheck: { emails: ["a@b.com"] },
      companyLookup: { domains: ["a.com"], maxCreditsPerSync: 5 },
    });
  });

  it("names the property of a variable that does not fit", () => {
    const wrong = { CONTACT_INTELLIGENCE_NUM_WORKERS: "four", CONTACT_INTELLIGENCE_EXTERNAL_API: "{hunter2" };
    expect(refusal(account, wrong)).toContain("num_workers must be an integer, not a string");
    expect(refusal(account, wrong)).toContain("external_api must be an object, not a string");
    expect(refusal(account, wrong)).not.toContain("hunter2");
  });

  it("leaves the given config as it was", () => {
    const given = { ...account, external_api: { ...external } };
    parseConfig(given, { CONTACT_INTELLIGENCE_EXTERNAL_API__API_KEY: "other" });
    expect(given).toEqual({ ...account, external_api: external });
  });
});

describe("normalize()", () => {
  it("changes nothing the second time", () => {
    const spec = loadSpec().connectionSpecification;
    const settings = Object.keys(spec.properties ?? {});
    const names = fc.constantFrom(...settings, "domains", "emails", "api_key", "other");
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        fc.constantFrom(null, "", " x ", "2026-01-02T03:04:05+09:00", 100, false, true),
        tie("list"),
        tie("object"),
      ),
      list: fc.array(tie("value"), { maxLength: 3 }),
      object: fc.dictionary(names, tie("value"), { maxKeys: 4 }),
    }));
    fc.assert(
      fc.property(fc.dictionary(names, value), (draft) => {
        const once = normalize(draft);
        expect(normalize(once)).toEqual(once);
      }),
    );
  });
});

describe("secretsOf()", () => {
  it("lists every key once, and the webhook's address", () => {
    const hook = "https://hook.example.com/token";
    const jobs = { external_api: external, company_lookup: { domains: ["a.com"], webhook_url: hook } };
    const secrets = (settings: object): readonly string[] => secretsOf(configOf({ ...settings }));
    expect(secrets({})).toEqual([KEY]);
    expect(secrets({ hash_fields: ["email"], hash_salt: "pepper" })).toEqual([KEY, "pepper"]);
    expect(secrets(jobs)).toEqual([KEY, "ext_key", hook]);
    expect(secrets({ ...jobs, external_api: { ...external, api_key: KEY } })).toEqual([KEY, hook]);
  });
});

describe("serviceUrl()", () => {
  it.each([
    ["https://host", "https://host/api/v1/public/people"],
    ["https://host/", "https://host/api/v1/public/people"],
    ["https://host:8443/a/b", "https://host:8443/a/b/api/v1/public/people"],
    ["https://host/a//", "https://host/a/api/v1/public/people"],
    ["https://host/a/api/v1/public/", "https://host/a/api/v1/public/people"],
  ])("joins %s and a path with one slash", (base, joined) => {
    const { baseUrl } = configOf({ base_url: base });
    expect(serviceUrl(baseUrl, "/api/v1/public/people").href).toBe(joined);
    expect(serviceUrl(baseUrl, "api/v1/public/people").href).toBe(joined);
  });

  it("takes no query from a path", () => {
    expect(serviceUrl(new URL("https://host/x"), "/a?b=c").search).toBe("");
  });
});

/** Settings beside those of an account, and variables without their prefix. */
const SITUATIONS: readonly (readonly [settings: object, environment?: Readonly<Record<string, string>>])[] = [
  // Types, limits, words and patterns.
  ...[null, "text", "7", 7.5, -1, true, [], [1], {}, { a: 1 }].flatMap((value): [object][] => [
    [{ num_workers: value, idle_timeout_seconds: value }],
    [{ verify_counts: value, proof_stream: value }],
    [{ source_slug: value, hash_salt: value, receipts_file: value }],
    [{ is_user: value }],
    [{ endpoints: value, external_api: value }],
    [{ drop_fields: value }],
    [{ ignore_missing_days: value, start_date: value }],
    [{ base_url: value }],
    [{ email_check: value }],
    [{ company_lookup: { domains: value, max_credits_per_sync: value } }],
  ]),
  ...[0, 1, 8, 9].map((num_workers): [object] => [{ num_workers }]),
  ...[4, 5, 600, 601].map((idle_timeout_seconds): [object] => [{ idle_timeout_seconds }]),
  [{ max_window_rows: 999, requests_per_minute: 6_001, lookback_window_days: 367 }],
  [{ endpoints: { companies: "companies", sources: "/a?b", email_check: "/a b" } }],
  [{ endpoints: { companies: " /c ", sources: null, email_check: "" } }],
  [{ api_key: "a b", hash_salt: "x".repeat(1_001) }],
  // Lists and texts as forms and people write them.
  [
    {
      drop_fields: " email, jobTitle\n\n ,",
      hash_fields: ["b", " a ", null, "", "b"],
      hash_salt: "x".repeat(16),
    },
  ],
  [{ drop_fields: ["email", 7], only_fields: [""] }],
  [{ only_fields: "", source_slug: " a b ", is_user: " FALSE " }],
  [{ is_user: "yes" }],
  [{ email_check: { emails: [" B@c.de", "a@b.cd", " B@c.de"], emails_file: "" } }],
  [{ email_check: { emails: [], max_per_sync: 1_000 } }],
  [{ email_check: { emails: [], max_per_sync: 1_001 } }],
  [{ email_check: { from_people: false, max_per_day: 3 } }],
  // Days.
  [{ start_date: "2026-01-03", end_date: "2026-01-02" }],
  [{ start_date: "2026-01-03", end_date: "2026-01-03T23:59:59-12:00" }],
  [{ start_date: "2026-02-30", end_date: "2026-01-01" }],
  [{ start_date: "2026-01-01", end_date: "2025-02-29" }],
  [{ ignore_missing_days: ["2026-01-03", "2026-01-02", "2026-01-03T10:00:00Z", "soon", 7, "2026-02-30"] }],
  [{ ignore_missing_days: "2026-01-03,2026-01-02" }],
  ...[
    "x".repeat(30),
    "x".repeat(31),
    "a+b/c",
    "a;b",
    "k",
    "svc_0",
    "svc_01",
    "svc_012",
    "3d",
    "123456d",
    "-3d",
  ].map((end_date): [object] => [{ end_date }]),
  [{ end_date: "pepper 1", hash_fields: ["email"], hash_salt: "pepper" }],
  [
    {
      end_date: "hook",
      external_api: external,
      company_lookup: { from_people: true, webhook_url: "https://hook" },
    },
  ],
  // Addresses.
  ...[
    "https://a b",
    "HTTPS://Host/Path/",
    "https://host/api/v1/public",
    "https://host/api/v1/external/",
    "http://host",
  ]
    .concat(
      "https://host:0x",
      "https://u@host",
      "https://:p@host",
      "https://host/?",
      "https://host#",
      "ftp://h",
    )
    .concat(
      "https:host",
      "http://127.0.0.1",
      "http://127.1",
      "http://128.0.0.1",
      "http://a.localhost.",
      "http://[::2]",
    )
    .concat("http://localhosts", "http://xlocalhost", "//host", "https://\tb", "https://a\u00a0b")
    .map((base_url): [object] => [{ base_url }]),
  [
    {
      base_url: "http://host",
      allow_insecure_http: true,
      external_api: { ...external, api_url: "http://other" },
    },
  ],
  [{ base_url: "http://host", allow_insecure_http: "true" }],
  [{ base_url: "http://host", allow_insecure_http: false }],
  [{ base_url: "http://host/?a" }],
  [{ base_url: "ftp://u:p@host?a" }],
  [{ base_url: "http://u:p@host?a" }],
  // Settings that need others.
  [{ base_url: null, api_key: "" }],
  [{ base_url: undefined, baseurl: "https://x", api_key: undefined, apiKey: "k", api_keys: "k" }],
  [{ external_api: { api_url: "https://x" } }],
  [{ external_api: { api_key: "k" } }],
  [{ external_api: { api_keey: "k", url: "x" } }],
  [{ external_api: {} }],
  [{ external_api: "x", email_verification: { emails: "a@b.cd" } }],
  [{ company_lookup: { max_wait_seconds: 1 } }],
  [{ company_lookup: { max_wait_seconds: 1 }, external_api: external }],
  [{ company_lookup: { domains_file: "x" } }],
  [{ company_lookup: { domains: "a.example" }, external_api: external }],
  [{ email_verification: { from_people: false, emails: [""], retry_unknown: true }, external_api: external }],
  [{ email_verification: { from_people: true }, external_api: external }],
  [{ email_verification: { emails_file: "x" } }],
  [{ email_check: { from_people: "yes" } }],
  [{ hash_fields: ["email"] }],
  [{ hash_fields: [] }],
  [{ hash_salt: "x".repeat(15) }],
  [{ hash_salt: "x".repeat(16) }],
  // Settings that there are not.
  [{ colour: 1, drop_feild: ["email"], max_workers: 3, domains: ["a"], "": 1, start: "2026-01-01" }],
  [
    {
      endpoints: { companys: "/x", other: 1 },
      email_check: { emails: "a@b.cd", from_person: true, api_url: "x" },
    },
  ],
  [{ external_api: { ...external, api_url2: "y", api: { url: 1 } } }],
  [Object.fromEntries(Array.from({ length: 20 }, (_, nth) => [`zzzzzzz${nth}`, nth]))],
  [Object.fromEntries(Array.from({ length: 21 }, (_, nth) => [`zzzzzzz${nth}`, nth]))],
  [{ "num\u0001workers": 3, "num workers": 3 }],
  // The environment.
  ...[
    "true",
    "TRUE",
    "1",
    "yes",
    "On",
    "false",
    "0",
    "No",
    "off",
    "y",
    "2",
    "",
    " ",
    "on top",
    "is on",
    "no way",
    "is off",
  ].map((text): [object, Record<string, string>] => [{}, { VERIFY_COUNTS: text, PROOF_STREAM: text }]),
  ...["3", "+3", "-3", "3.0", "3.5", ".5", "3.", "0x3", "1e0", "3a", "a3", " 3 "].map(
    (text): [object, Record<string, string>] => [{}, { NUM_WORKERS: text }],
  ),
  ...['["email"]', '["email"', "email,jobTitle", '{"a":1}', '"email"', " [ ] "].map(
    (text): [object, Record<string, string>] => [{}, { DROP_FIELDS: text }],
  ),
  ...['{"api_url":"https://x","api_key":"k"}', '{"api_url":"https://x"', "[1]", "null", "{}", "7"].map(
    (text): [object, Record<string, string>] => [{ external_api: external }, { EXTERNAL_API: text }],
  ),
  [{ external_api: 7 }, { EXTERNAL_API__API_URL: "https://x", EXTERNAL_API__API_KEY: "k" }],
  [
    { email_check: { emails: ["a@b.cd"] } },
    { EMAIL_CHECK__FROM_PEOPLE: "yes", EMAIL_CHECK__MAX_PER_SYNC: "x" },
  ],
  [{ num_workers: 9 }, { NUM_WORKERS: "10", START_DATE: "2026-02-30", API_KEY: "a b" }],
  [{ start_date: "x", num_workers: 0, is_user: "x" }, { END_DATE: "y" }],
  [{}, { NUM_WORKER: "1", WORKERS: "1", EXTERNAL_API__KEY: "k", EXTERNAL_API__API_KEYS: "k", HOST: "h" }],
  [{}, { num_workers: "1", API_KEY__INNER: "k", EMAIL_CHECK__EMAIL: "x", EMAILCHECK__EMAILS: "x" }],
  [{ max_workers: 1 }, { MAX_WORKERS: "1" }],
  [{}, { SOURCE_SLUG: "[1]", RECEIPTS_FILE: "  ", IS_USER: "True", HASH_SALT: "7" }],
];

it("configs mean what golden/configs.txt says", async () => {
  const usual = parseConfig(account, {});
  const shownOf = (name: string, value: unknown): string => {
    if (value instanceof Map) return `${name}: ${[...value].map((pair) => pair.join(" from ")).join(", ")}`;
    return `${name}: ${JSON.stringify(value)}`;
  };
  const said = (settings: object, environment: Record<string, string>): readonly string[] => {
    try {
      const config = parseConfig({ ...account, ...settings }, environment, "it");
      const { suppressed: _, ...entries } = config;
      return Object.entries(entries)
        .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(usual[name as keyof Config]))
        .filter(([name]) => name !== "origins")
        .map(([name, value]) => shownOf(name, value))
        .concat(shownOf("origins", new Map([...config.origins].filter(([name]) => !(name in account)))));
    } catch (error) {
      return (error as Error).message.split(/(?<=;) |\. (?=Cannot)/);
    }
  };
  const lines = SITUATIONS.flatMap(([settings, variables = {}]) => {
    const environment = Object.fromEntries(
      Object.entries(variables).map(([name, text]) => [`CONTACT_INTELLIGENCE_${name}`, text]),
    );
    const of = Object.keys(variables).length === 0 ? "" : ` with ${JSON.stringify(variables)}`;
    return [JSON.stringify(settings) + of, ...said(settings, environment).map((line) => `  ${line}`)];
  });
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/configs.txt");
});

it("a config says on which line of its file a setting is that is wrong, unless the environment said it", () => {
  const lines = new Map([
    ["num_workers", 3],
    ["drop_fields", 4],
    ["email_check.max_per_day", 7],
    ["is_user", 9],
  ]);
  const settings = {
    num_workers: 9,
    drop_fields: [1, "a", 2],
    email_check: { max_per_day: -1 },
    is_user: "x",
  };
  const environment = { CONTACT_INTELLIGENCE_IS_USER: "y", CONTACT_INTELLIGENCE_DROP_FEILDS: "z" };
  expect(() => parseConfig({ ...account, ...settings }, environment, "it", undefined, lines)).toThrow(
    'Cannot use the environment variable CONTACT_INTELLIGENCE_IS_USER: is_user must be one of "all", "true", "false". ' +
      "Cannot use it: drop_fields[0] must be a string, not a number (line 4); drop_fields[2] must be a string, not a number (line 4); " +
      "email_check.max_per_day must be at least 0, not -1 (line 7); num_workers must be at most 8, not 9 (line 3); " +
      "email_check has nothing to work on: set one of emails, emails_file, from_people, or remove email_check. " +
      'Cannot use the environment: the environment variable CONTACT_INTELLIGENCE_DROP_FEILDS is not a setting. Did you mean "CONTACT_INTELLIGENCE_DROP_FIELDS"?',
  );
});

it("a tap takes variables of either prefix, and ours where both say something", () => {
  const of = (environment: Record<string, string>): Config =>
    parseConfig(account, environment, "it", TAP_PREFIXES);
  const [ours, its] = ["CONTACT_INTELLIGENCE_NUM_WORKERS", "TAP_CONTACT_INTELLIGENCE_NUM_WORKERS"];
  expect(of({ [its]: "3" })).toMatchObject({ numWorkers: 3 });
  expect(of({ [its]: "3" }).origins.get("num_workers")).toBe(`the environment variable ${its}`);
  for (const both of [
    { [its]: "3", [ours]: "4" },
    { [ours]: "4", [its]: "3" },
  ]) {
    expect(of(both).numWorkers).toBe(4);
    expect(of(both).origins.get("num_workers")).toBe(`the environment variable ${ours}`);
  }
  expect(of({ [its]: "3", [ours]: " " }).numWorkers).toBe(3);
  expect(() => of({ [`${its}S`]: "3" })).toThrow(`${its}S is not a setting. Did you mean "${its}"?`);
  expect(() => parseConfig({}, {}, "it", TAP_PREFIXES)).toThrow(
    "base_url is missing: set it in the config or as TAP_CONTACT_INTELLIGENCE_BASE_URL",
  );
  expect(() => parseConfig({ ...account, hash_fields: ["a"] }, {}, "it", TAP_PREFIXES)).toThrow(
    "Set it in the config or as TAP_CONTACT_INTELLIGENCE_HASH_SALT",
  );
  expect(parseConfig(account, { [its]: "9" }).numWorkers).toBe(2);
});

it.each([
  [100, true],
  [101, false],
])("a config may be nested %i levels deep: %j", (levels, isTaken) => {
  const colour = JSON.parse(`${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}`);
  const parse = (): Config => configOf({ colour });
  if (isTaken) expect(parse().warnings).toEqual(['Unknown setting "colour". It has no effect']);
  else expect(parse).toThrow("Cannot use the config: it is nested more than 100 levels deep");
});

it("normalize() knows days ago, and takes today in UTC for the last of them", () => {
  const startOf = (start_date: string): unknown => normalize({ start_date })["start_date"];
  const [today, before] = [startOf("0d"), startOf("10000d")].map((day) => Date.parse(String(day)));
  expect((today ?? 0) - (before ?? 0)).toBe(10_000 * 86_400_000);
  expect(startOf("99999d")).toMatch(/^17\d\d-/);
  expect([startOf("100000d"), startOf("d"), startOf("1 d"), startOf("x1d"), startOf("1dx")]).toEqual([
    ...["100000d", "d", "1 d", "x1d", "1dx"],
  ]);
});
