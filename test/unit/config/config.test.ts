import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import { type Config, parseConfig, secretsOf } from "../../../src/config/config.ts";
import { TAP_PREFIXES } from "../../../src/config/environment.ts";
import { loadSpec } from "../../../src/config/spec.ts";

const KEY = "svc_0123abcd_0123456789abcdef0123456789abcdef";
const account = { base_url: "https://contacts.example.com", api_key: KEY };
const external = { api_url: "https://external.example.com", api_key: "ext_key" };

/** A config of an account with further settings. */
const configOf = (settings: object, variables: object = {}): Config =>
  parseConfig({ ...account, ...settings }, environmentOf(variables));

const environmentOf = (variables: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(variables).map(([name, text]) => [`CONTACT_INTELLIGENCE_${name}`, String(text)]),
  );

/** The message that a config is refused with. */
function refusal(value: unknown, variables: object = {}): string {
  try {
    parseConfig(value, environmentOf(variables));
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return String((error as Error).message);
  }
  throw new Error("The config was accepted");
}

const refused = (settings: object, variables: object = {}): string =>
  refusal({ ...account, ...settings }, variables);

type Properties = Readonly<Record<string, { readonly default?: unknown; readonly properties?: Properties }>>;

const defaultsOf = (properties: Properties = {}): object =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, { default: value, properties: inner }]) => {
      const given = inner === undefined ? value : defaultsOf(inner);
      return given === undefined ? [] : [[name, given]];
    }),
  );

const settingsOf = ({ warnings: _, origins: __, suppressed: ___, ...settings }: Config): object => settings;

describe("a config", () => {
  it("of an address and a key is the one of all defaults that a form shows", () => {
    const { properties } = loadSpec().connectionSpecification;
    expect(settingsOf(configOf(defaultsOf(properties)))).toEqual(settingsOf(configOf({})));
    expect(configOf({})).toMatchObject({ baseUrl: { href: `${account.base_url}/` }, apiKey: KEY });
    expect(configOf({})).toMatchObject({ lookbackWindowDays: 1, verifyCounts: true, requestsPerMinute: 60 });
  });

  it("takes empty fields of a form for absent", () => {
    const form = {
      ...{ start_date: null, end_date: "", source_slug: "  ", ignore_missing_days: [] },
      ...{ external_api: { api_url: "", api_key: null }, email_check: {} },
      company_lookup: { domains: [], from_companies: false, max_credits_per_sync: 100 },
      email_verification: { emails: [""], retry_unknown: false },
      endpoints: { companies: "/api/v1/public/companies" },
    };
    expect(settingsOf(configOf(form))).toEqual(settingsOf(configOf({})));
  });

  it.each<[settings: object, expected: object]>([
    [{ is_user: true }, { isUser: "true" }],
    [{ is_user: " FALSE " }, { isUser: "false" }],
    [{ api_key: ` ${KEY}\n` }, { apiKey: KEY }],
    [{ base_url: "http://service", allow_insecure_http: true }, { baseUrl: { host: "service" } }],
    [{ base_url: "http://localhost:8080" }, { baseUrl: { host: "localhost:8080" } }],
    [{ drop_fields: " email, jobTitle\n\n ,email" }, { dropFields: ["email", "jobTitle"] }],
    [{ receipts_file: "" }, { receiptsFile: "" }],
    [{ receipts_file: " /data/r.jsonl " }, { receiptsFile: "/data/r.jsonl" }],
    [
      { start_date: "2026-02-01", end_date: "2026-02-01" },
      { startDate: "2026-02-01", endDate: "2026-02-01" },
    ],
    [{ start_date: "2026-01-02T23:30:00-05:00" }, { startDate: "2026-01-03" }],
    [{ start_date: " 2026-01-02 10:00:00 " }, { startDate: "2026-01-02" }],
    [
      { ignore_missing_days: ["2026-01-03", "2026-01-02T10:00:00Z", "2026-01-02"] },
      { ignoreMissingDays: ["2026-01-02", "2026-01-03"] },
    ],
    [
      { email_check: { emails: " a@b.com, C@d.com\n\nE@f.com\r\n" } },
      { emailCheck: { emails: ["a@b.com", "C@d.com", "E@f.com"] } },
    ],
    [
      { email_check: { emails: ["a@B.com ", "a@b.com"] } },
      { emailCheck: { maxPerSync: 1000, emails: ["a@B.com", "a@b.com"] } },
    ],
    [{ email_check: { from_people: true } }, { externalApi: null, emailCheck: { fromPeople: true } }],
    [
      { external_api: external, company_lookup: { from_companies: true } },
      {
        externalApi: { apiKey: "ext_key" },
        companyLookup: { maxCreditsPerSync: 100, maxLookupsPerSync: 100 },
      },
    ],
  ])("takes %j", (settings, expected) => {
    expect(configOf(settings)).toMatchObject(expected);
  });

  it("takes start_date as days ago, counted in UTC, and no other day", () => {
    const today = Date.parse(new Date().toISOString().slice(0, 10));
    const ago = (now: number): string => new Date(now - 30 * 86_400_000).toISOString().slice(0, 10);
    expect([ago(today), ago(today + 86_400_000)]).toContain(configOf({ start_date: " 30d " }).startDate);
    expect(refused({ end_date: "30d" })).toContain("end_date must be YYYY-MM-DD");
  });

  it.each<[settings: object, why: string]>([
    [{ base_url: null }, "base_url is missing: set it in the config or as CONTACT_INTELLIGENCE_BASE_URL"],
    [
      { base_url: "contacts.example.com" },
      'base_url is "contacts.example.com": it must be "https://contacts.example.com"',
    ],
    [{ base_url: "ftp://host" }, "base_url must be https://host or https://host/path"],
    [{ external_api: { ...external, api_url: "http://a.example" } }, "set allow_insecure_http to true"],
    [{ api_key: "two words" }, "api_key must be the key alone"],
    [{ api_key: "ключ" }, "api_key must be the key alone"],
    [{ num_workers: "4" }, 'num_workers is "4": it must be a whole number from 1 to 8, without quotes'],
    [{ lookback_window_days: 0 }, "lookback_window_days is 0: it must be a whole number from 1 to 366"],
    [{ max_window_rows: "many" }, 'max_window_rows is "many": it must be a whole number of at least 1000'],
    [{ email_verification: [7] }, 'email_verification must be an object, such as {"emails": …}'],
    [{ num_workers: { toString: 1 } }, "num_workers must be a whole number from 1 to 8"],
    [
      { start_date: "2026-02-30" },
      'start_date is "2026-02-30": it must be a date that exists, such as 2026-01-31',
    ],
    [
      { hash_salt: "gr\ufffdn" },
      "hash_salt has characters that were lost (U+FFFD): write it again, as UTF-8",
    ],
    [{ drop_fields: ["email", "\ud800"] }, "drop_fields.1 has characters that were lost"],
    [{ end_date: "yesterday" }, 'end_date is "yesterday": it must be YYYY-MM-DD'],
    [
      { ignore_missing_days: ["2026-01-02", "soon"] },
      'ignore_missing_days.1 is "soon": it must be YYYY-MM-DD',
    ],
    [{ start_date: "2026-02-02", end_date: "2026-02-01" }, "must not be after end_date"],
    [{ company_lookup: { domains: ["a.com"] } }, "company_lookup needs external_api"],
    [{ email_verification: { emails: ["a@b.com"] } }, "email_verification needs external_api"],
    [{ external_api: { api_key: "k" } }, "external_api.api_url is missing"],
    [{ email_check: { from_companies: true } }, "nothing to work on: set one of emails, emails_file, from"],
    [{ hash_fields: ["email"] }, "hash_salt is missing (hash_fields needs it)"],
    [{ receipts_file: "~/r.jsonl" }, 'receipts_file begins with "~", which only shells replace'],
    [{ email_check: { emails_file: "~" } }, 'email_check.emails_file begins with "~"'],
    [{ drop_feilds: ["email"] }, 'drop_feilds is not a setting. Did you mean "drop_fields"?'],
    [{ startDate: "2026-01-01" }, 'Did you mean "start_date"?'],
    [{ email_check: { emails: "a@b.cd", max_per_dai: 5 } }, 'Did you mean "email_check.max_per_day"?'],
    [
      { api_key: undefined, api_kye: KEY },
      'api_key is missing: set it in the config or as CONTACT_INTELLIGENCE_API_KEY; api_kye is not a setting. Did you mean "api_key"?',
    ],
    [{ hash_salt: "x".repeat(1_001) }, "hash_salt must have at most 1000 characters"],
  ])("is refused for %j: %s", (settings, why) => {
    expect(refused(settings)).toContain(why);
  });

  it("says all that is wrong in one message, each setting once, with its place and line", () => {
    const lines = new Map([
      ["num_workers", 3],
      ["drop_fields", 4],
      ["is_user", 9],
    ]);
    const settings = { ...account, num_workers: 9, drop_fields: [1, "a"], is_user: "x" };
    const environment = environmentOf({ IS_USER: "y", DROP_FEILDS: "z" });
    expect(() => parseConfig(settings, environment, { name: "it", lines })).toThrow(
      'Cannot use it: CONTACT_INTELLIGENCE_IS_USER is "y": it must be "all", "true" or "false"; ' +
        "drop_fields.0 is 1: it must be text (line 4); num_workers is 9: it must be a whole number from 1 to 8 (line 3); " +
        "the environment variable CONTACT_INTELLIGENCE_DROP_FEILDS is not a setting. " +
        'Did you mean "CONTACT_INTELLIGENCE_DROP_FIELDS"?',
    );
  });

  it.each<[settings: object, unknown: string]>([
    [{ max_workers: 4 }, "max_workers"],
    [JSON.parse('{"__proto__": {"x": 1}}'), "__proto__"],
    [{ endpoints: { toString: "/x" } }, "endpoints.toString"],
    [{ domains: ["a.com"] }, "domains"],
    [{ "a\u001b[2J\u202e": 1 }, "a\\u001b[2J\\u202e"],
  ])("is used with a warning for a setting that has no effect: %j", (settings, unknown) => {
    const foreign = { SERVICE_HOST: "10.0.0.1", PORT_80_TCP: "tcp://10.0.0.1:80", MAX_WORKERS: "4" };
    const config = parseConfig({ ...settings, ...account }, environmentOf(foreign));
    expect(config.warnings).toEqual([`Unknown setting "${unknown}" in the config. It has no effect`]);
    expect(settingsOf(config)).toEqual(settingsOf(configOf({})));
  });

  it("warns of a salt that is easily guessed", () => {
    const warningsOf = (hash_salt: string) => configOf({ hash_fields: ["email"], hash_salt }).warnings;
    expect(warningsOf("0123456789abcdef")).toEqual([]);
    expect(warningsOf("\u{1f9c2}".repeat(15))).toEqual([expect.stringContaining("less than 16 characters")]);
  });
});

describe("a secret", () => {
  it("is in no message about a config, whatever else is wrong", () => {
    const secret = fc.stringMatching(/^hunter2[!-~ \n]{0,20}$/);
    const anything = fc.oneof(fc.jsonValue(), secret, fc.constant(undefined));
    fc.assert(
      fc.property(secret, secret, anything, anything, (key, hook, url, users) => {
        const message = refusal({
          ...{ base_url: url, api_key: key, is_user: users, num_workers: key, source_slug: [key] },
          ...{ start_date: key, end_date: "2026-01-01" },
          external_api: { api_url: users, api_key: { inner: key } },
          company_lookup: { domains: [key], webhook_url: hook },
        });
        expect(message.toLowerCase()).not.toContain("hunter2");
      }),
    );
  });

  it.each<[settings: object, variables?: object]>([
    [{ api_key: "hunter2", end_date: "hunter2" }],
    [{ api_key: "the-hunter2-key", end_date: "hunter2" }],
    [{ end_date: "svc_hunter2_0123456789abcdef01234567" }],
    [{ base_url: "https://user:hunter2@host" }],
    [{ base_url: "https://host/?key=hunter2" }],
    [{ base_url: "https://ho st/hunter2" }],
    [{ api_key: `hunter2${"x".repeat(1_000)}` }],
    [{ source_slug: {}, is_user: "hunter2" }],
    [{ api_key: 271828, hash_salt: 271828, external_api: { api_url: external.api_url, api_key: 271828 } }],
    [{ idle_timeout_seconds: "hunter2 and more" }],
    [{}, { EXTERNAL_API: "{hunter2" }],
  ])("that was pasted into the wrong place is not quoted: %j %j", (settings, variables) => {
    expect(refused(settings, variables)).not.toMatch(/hunter2|271828/);
  });

  it("is every key, the salt and the webhook's address, each to be hidden once", () => {
    const webhook_url = "https://hook.example.com/token";
    const jobs = { external_api: external, company_lookup: { domains: ["a.com"], webhook_url } };
    const secrets = (settings: object): readonly string[] => secretsOf(configOf(settings));
    expect(secrets({})).toEqual([KEY]);
    expect(secrets({ hash_fields: ["email"], hash_salt: "pepper" })).toEqual([KEY, "pepper"]);
    expect(secrets({ ...jobs, external_api: { ...external, api_key: KEY } })).toEqual([KEY, webhook_url]);
    expect(secrets(jobs)).toEqual([KEY, "ext_key", webhook_url]);
  });
});

describe("the environment", () => {
  it.each<[variables: object, expected: object]>([
    [{ NUM_WORKERS: " 4 " }, { numWorkers: 4 }],
    [{ NUM_WORKERS: " " }, { numWorkers: 3 }],
    [
      { VERIFY_COUNTS: "off", ALLOW_INSECURE_HTTP: "Yes" },
      { verifyCounts: false, allowInsecureHttp: true },
    ],
    [
      { SOURCE_SLUG: "123", IS_USER: "true" },
      { sourceSlug: "123", isUser: "true" },
    ],
    [{ IGNORE_MISSING_DAYS: "2026-01-02, 2026-01-01" }, { ignoreMissingDays: ["2026-01-01", "2026-01-02"] }],
    [{ DROP_FIELDS: '["email"]' }, { dropFields: ["email"] }],
    [{ EXTERNAL_API: JSON.stringify(external) }, { externalApi: { apiKey: "ext_key" } }],
    [
      { EXTERNAL_API: JSON.stringify(external), EXTERNAL_API__API_KEY: "other" },
      { externalApi: { apiKey: "other" } },
    ],
    [{ EMAIL_CHECK__EMAILS: "a@b.com" }, { emailCheck: { emails: ["a@b.com"] } }],
  ])("wins over the file, by the types of the settings: %j", (variables, expected) => {
    expect(configOf({ num_workers: 3 }, variables)).toMatchObject(expected);
  });

  it.each<[variables: object, why: string]>([
    [{ NUM_WORKERS: "0x3" }, "NUM_WORKERS must be a whole number from 1 to 8"],
    [{ VERIFY_COUNTS: "no way" }, "VERIFY_COUNTS must be true or false"],
    [{ EXTERNAL_API: "[1]" }, 'EXTERNAL_API must be an object, such as {"api_url": …}'],
    [{ NUM_WORKERS: "abc" }, 'NUM_WORKERS is "abc": it must be a whole number'],
    [{ EMAIL_CHECK: '{"emails": 5}' }, "email_check.emails is 5: it must be a list of texts (in CONTACT_"],
    [{ EXTERNAL_API__APIKEY: "x" }, 'Did you mean "CONTACT_INTELLIGENCE_EXTERNAL_API__API_KEY"?'],
  ])("is refused for %j: %s", (variables, why) => {
    expect(refused({}, variables)).toContain(why);
  });

  it("is enough without a file", () => {
    const variables = environmentOf({ BASE_URL: "https://env.example.com", API_KEY: "env_key" });
    expect(parseConfig(undefined, variables)).toMatchObject({ apiKey: "env_key" });
    for (const value of [[], "text", 7]) expect(refusal(value)).toContain("not an object of properties");
  });

  it("is named as the place of the settings that it says", () => {
    const variables = { API_KEY: "env_key", EXTERNAL_API: JSON.stringify(external) };
    const { origins } = parseConfig({ ...account, num_workers: 3 }, environmentOf(variables), {
      name: "the file",
    });
    const prefix = "the environment variable CONTACT_INTELLIGENCE_";
    expect(Object.fromEntries(origins)).toEqual({
      ...{ base_url: "the file", num_workers: "the file", api_key: `${prefix}API_KEY` },
      external_api: `${prefix}EXTERNAL_API`,
      "external_api.api_url": `${prefix}EXTERNAL_API`,
      "external_api.api_key": `${prefix}EXTERNAL_API`,
    });
  });

  it("has for a tap a second prefix: ours wins, and is advised", () => {
    const of = (environment: Record<string, string>, value: object = account): Config =>
      parseConfig(value, environment, { name: "it", prefixes: TAP_PREFIXES });
    const [ours, its] = ["CONTACT_INTELLIGENCE_NUM_WORKERS", "TAP_CONTACT_INTELLIGENCE_NUM_WORKERS"];
    expect([of({ [its]: "3" }), of({ [its]: "3", [ours]: "4" })].map(({ numWorkers }) => numWorkers)).toEqual(
      [3, 4],
    );
    expect(parseConfig(account, { [its]: "9" }).numWorkers).toBe(2);
    expect(() => of({ [`${its}S`]: "3" })).toThrow(`Did you mean "${its}"?`);
    expect(() => of({}, {})).toThrow("or as CONTACT_INTELLIGENCE_BASE_URL");
  });
});
