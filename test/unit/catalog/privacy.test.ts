import { createHmac } from "node:crypto";
import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schemaUnder } from "../../../src/catalog/field-rules.ts";
import { fieldNamesOf, Privacy } from "../../../src/catalog/privacy.ts";
import { catalogConflicts } from "../../../src/catalog/privacy-schema.ts";
import { type JsonSchema, loadSchema, propertiesOf } from "../../../src/catalog/schema.ts";
import { asRead, rawLine } from "../../support/events.ts";

const SALT = "a long random text";

const NO_JOBS = { companyLookup: null, emailVerification: null, emailCheck: null };

const JOBS = {
  companyLookup: {} as never,
  emailVerification: {} as never,
  emailCheck: {} as never,
};

const privacy = (
  dropFields: string[],
  hashFields: string[] = [],
  jobs: typeof JOBS | typeof NO_JOBS = NO_JOBS,
) =>
  new Privacy({
    ...jobs,
    onlyFields: [],
    dropFields,
    hashFields,
    hashSalt: hashFields.length > 0 ? SALT : null,
  });

const only = (onlyFields: string[], dropFields: string[] = []): Privacy =>
  new Privacy({ ...NO_JOBS, onlyFields, dropFields, hashFields: [], hashSalt: null });

const digest = (text: string): string => createHmac("sha256", SALT).update(text, "utf8").digest("hex");

function sent(given: Privacy, stream: string, json: string): unknown {
  const rewrite = given.rewriter(stream) ?? ((line: string) => line);
  return JSON.parse(asRead(rewrite(rawLine(json))));
}

const leaving = (given: Privacy, stream: string, schema: JsonSchema): JsonSchema =>
  schemaUnder(given.rules(stream), schema, "leaving");

const row = (value: object): string => JSON.stringify(value);

describe("Privacy", () => {
  it("leaves streams alone that nothing names", () => {
    expect(privacy([]).rewriter("people")).toBeNull();
    expect(privacy(["companies.ssn"]).rewriter("people")).toBeNull();
  });

  it("drops a bare name in all streams, at every depth, and a stream's name only there", () => {
    const given = privacy(["email", "people.lastName"]);
    const value = {
      id: "1",
      email: "e",
      lastName: "l",
      a: [{ email: "e", b: [[{ email: 1 }]] }],
      c: { email: {} },
    };
    expect(sent(given, "people", row(value))).toEqual({ id: "1", a: [{ b: [[{}]] }], c: {} });
    expect(sent(given, "companies", row(value))).toMatchObject({ lastName: "l" });
    expect(sent(given, "companies", row(value))).not.toHaveProperty("email");
  });

  it("follows paths into objects and lists, from the top or, without a stream, from anywhere", () => {
    const given = privacy(["companies.a.b", "x.y"]);
    const value = { a: [{ b: 1, c: 2 }], b: 3, z: { a: { b: 1 }, x: { y: 1, z: 2 } }, y: 4 };
    expect(sent(given, "companies", row(value))).toEqual({
      ...{ a: [{ c: 2 }], b: 3, z: { a: { b: 1 }, x: { z: 2 } }, y: 4 },
    });
  });

  it("takes a dot for a part of a field's name as well, in rows and schemas", () => {
    const inner = { "street.name": "s", city: "c", "a.b": { c: 1, d: 2 } };
    const value = {
      domain: "d",
      "hq.city": "c",
      hq: inner,
      "hq.street": { name: "s" },
      "hq.street.name": "s",
    };
    const names = ["hq.city", "hq.street.name", "hq.a.b.c"].map((name) => `companies.${name}`);
    const left = { domain: "d", hq: { "a.b": { d: 2 } }, "hq.street": {} };
    expect(sent(privacy(names), "companies", row(value))).toEqual(left);
    expect(sent(privacy(["hq.city", "street.name"]), "companies", row(value))).toEqual({
      ...value,
      ...{ "hq.city": undefined, hq: { "a.b": { c: 1, d: 2 } } },
    });
    expect(sent(privacy([], ["companies.hq.city"]), "companies", row(value))).toMatchObject({
      ...{ "hq.city": digest("c"), hq: { city: digest("c") } },
    });
    expect(sent(only(names), "companies", row(value))).toEqual({
      ...value,
      hq: { "street.name": "s", city: "c", "a.b": { c: 1 } },
    });
    const schema = { properties: { "hq.city": { type: "string" }, "hq.size": { type: "string" } } };
    expect(leaving(privacy(names), "companies", schema)).toEqual({
      properties: { "hq.size": { type: "string" } },
    });
  });

  it("hashes the same value the same way in every stream, keys included", () => {
    const given = privacy([], ["email", "people.id"]);
    const email = "josé@example.com";
    for (const stream of ["people", "email_checks", "companies"]) {
      expect(sent(given, stream, `{"email":"jos\\u00e9@example.com"}`)).toEqual({ email: digest(email) });
      expect(sent(given, stream, row({ email }))).toEqual({ email: digest(email) });
    }
    expect(sent(given, "people", row({ id: "7", n: 1 }))).toEqual({ id: digest("7"), n: 1 });
    expect(sent(given, "companies", row({ id: "7" }))).toEqual({ id: "7" });
  });

  it("lets nothing pass raw: numbers, booleans, objects and lists are hashed, null is null", () => {
    const given = privacy([], ["x"]);
    const of = (json: string): unknown => (sent(given, "people", `{"x":${json}}`) as { x: unknown }).x;
    expect(of("9007199254740993")).toBe(digest("9007199254740993"));
    expect(of("1.50")).toBe(digest("1.50"));
    expect(of("false")).toBe(digest("false"));
    expect(of("null")).toBeNull();
    expect(of('["a",null,["b"]]')).toEqual([digest("a"), null, [digest("b")]]);
    expect(of('{ "a" : 1 }')).toBe(digest('{"a":1}'));
  });

  it.each([
    ["email", "people.email"],
    ["people.email", "email"],
    ["email", "email"],
  ])("drops what is to be dropped and hashed: %s, %s", (dropped, hashed) => {
    const given = privacy([dropped], [hashed]);
    expect(sent(given, "people", row({ id: "1", email: "e" }))).toEqual({ id: "1" });
  });

  it("drops what is to be dropped and hashed, at every depth", () => {
    expect(sent(privacy(["people.email"], ["email"]), "people", row({ email: "e" }))).toEqual({});
  });

  it.each<[string, string[], string[], RegExp]>([
    [
      "a dropped key",
      ["people.id"],
      [],
      /drop_fields "people.id" names the primary key of "people", which cannot be dropped/,
    ],
    [
      "a key that a bare name hits",
      ["domain"],
      [],
      /"domain" names the primary key of "companies".*Name the streams.*"<stream>\.domain"/,
    ],
    ["a dropped cursor", ["discoveredAt"], [], /names the cursor of "people"/],
    [
      "a hashed cursor",
      [],
      ["people.discoveredAt"],
      /hash_fields "people.discoveredAt" names the cursor of "people", which cannot be hashed/,
    ],
    ["a cursor that live records may carry", ["companies.discoveredAt"], [], /the cursor of "companies"/],
    ["a field that a fixed schema lacks", ["people.emial"], [], /names a field that "people" does not have/],
    ["an empty name", ["people."], [], /is no field name/],
  ])("refuses %s by name", (_, drop, hash, message) => {
    expect(() => privacy(drop, hash)).toThrow(message);
  });

  it("holds a bare name against the streams that the config has", () => {
    expect(() => privacy(["email"])).not.toThrow();
    expect(() => privacy(["email"], [], JOBS)).toThrow(/primary key of "email_checks"/);
    expect(() => privacy([], ["email"], JOBS)).not.toThrow();
    expect(() => privacy(["company_lookups.contacts.email", "companies.anything.at.all"])).not.toThrow();
    expect(() => privacy(["company_lookups.contacts.emial"])).toThrow("does not have");
  });

  it("warns of a name that no row had, once rows were read", () => {
    const given = privacy(["companies.ssn", "tax", "email", "people.email", "contacts.first_name"]);
    expect(given.unused()).toEqual([]);
    given.rewriter("companies")?.('{"domain":"x"}');
    expect(given.unused()).toEqual([
      expect.stringContaining('"companies.ssn"'),
      expect.stringContaining('"tax"'),
    ]);
    given.rewriter("companies")?.('{"ssn":1,"a":{"tax":2}}');
    expect(given.unused()).toEqual([]);
  });

  it("warns of a name to let out that the only row had not", () => {
    const given = only(["companies.domain", "companies.employeCount"]);
    expect(given.unused()).toEqual([]);
    given.rewriter("companies")?.('{"domain":"x","employeeCount":1}');
    expect(given.unused()).toEqual([expect.stringContaining('that none of the rows of "companies" had')]);
  });

  it("types the hashed as text and leaves out the dropped, in lists too", () => {
    const given = privacy(
      ["jobTitle", "company_lookups.contacts.email"],
      ["people.id", "employeeCount", "linkedin_url", "tags"],
    );
    const people = propertiesOf(leaving(given, "people", loadSchema("people")));
    expect(people).not.toHaveProperty("jobTitle");
    expect(people["id"]).toMatchObject({ type: ["null", "string"] });
    const company = {
      type: "object",
      properties: { employeeCount: { type: ["null", "integer"], enum: [1], format: "x" } },
    };
    expect(leaving(given, "companies", company)).toEqual({
      type: "object",
      properties: { employeeCount: { type: ["null", "string"] } },
    });
    const tags = {
      type: "object",
      properties: { tags: { type: ["null", "array"], items: { type: "integer" } } },
    };
    expect(leaving(given, "companies", tags).properties?.["tags"]).toEqual({
      ...{ type: ["null", "array"], items: { type: ["null", "string"] } },
    });
    const response = leaving(
      privacy([], ["response"]),
      "email_verifications",
      loadSchema("email_verifications"),
    );
    expect(propertiesOf(response)["response"]).toMatchObject({ type: ["null", "string", "array"] });
    const lookups = leaving(given, "company_lookups", loadSchema("company_lookups"));
    const contact = propertiesOf(lookups.properties?.["contacts"]?.items);
    expect(contact).not.toHaveProperty("email");
    expect(contact["linkedin_url"]).toMatchObject({ type: ["null", "string"] });
    expect(contact).toHaveProperty("first_name");
  });

  it("expects of arriving rows nothing where values do not leave as they came", () => {
    const given = privacy(["people.lastName", "ssn"], ["people.id"]);
    const arriving = propertiesOf(
      schemaUnder(given.rules("people"), leaving(given, "people", loadSchema("people")), "arriving"),
    );
    expect([arriving["lastName"], arriving["ssn"], arriving["id"]]).toEqual([{}, {}, {}]);
    expect(arriving["firstName"]).toHaveProperty("type");
  });

  it("finds a catalog that names what is dropped, or types what is hashed otherwise", () => {
    const given = privacy(["a", "n.b"], ["c", "d", "e", "f"]);
    const schema = {
      properties: {
        ...{ a: {}, n: { items: { properties: { b: {} } } }, c: { type: ["null", "integer"] } },
        ...{ d: { type: "string", format: "date-time" }, e: { type: ["null", "string"] }, f: {} },
      },
    };
    const rules = given.rules("companies");
    if (rules === null) throw new Error("no rules");
    expect(catalogConflicts(schema, rules)).toEqual({ mistyped: ["c", "d"], dropped: ["a", "n.b"] });
  });
});

describe("any row", () => {
  const MARK = "sécret😀";
  /** Every spelling of a text as JSON: each character plain or escaped. */
  const spelt = (text: string) =>
    fc
      .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
      .map((escapes) =>
        [...Array(text.length).keys()]
          .map((at) => {
            const code = text.charCodeAt(at);
            const isSurrogate = code >= 0xd800 && code <= 0xdfff;
            return escapes[at] === true || isSurrogate
              ? `\\u${code.toString(16).padStart(4, "0")}`
              : text[at];
          })
          .join(""),
      )
      .map((inner) => `"${inner}"`);
  const names = fc.oneof(...["gone", "h", "é", "other", "id"].map(spelt));
  const secretNames = new Set(["gone", "h"]);
  const { object } = fc.letrec<{ object: string; value: string; secret: string; member: string }>((tie) => ({
    // A member of a secret name holds the mark somewhere; others never do.
    member: names.chain((name) =>
      (secretNames.has(JSON.parse(name)) ? tie("secret") : tie("value")).map((value) => `${name} : ${value}`),
    ),
    object: fc.array(tie("member"), { maxLength: 4 }).map((members) => `{${members.join(" , ")}}`),
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom("1", "9007199254740993", "1.50e3", "null", "true", '"plain"'),
      fc.array(tie("value"), { maxLength: 3 }).map((values) => `[ ${values.join(", ")} ]`),
      tie("object"),
    ),
    secret: fc.oneof(
      { maxDepth: 2 },
      spelt(MARK),
      fc.constantFrom("4242424242424242424"),
      fc.array(tie("secret"), { maxLength: 3 }).map((values) => `[${values.join(",")}]`),
      tie("secret").map((value) => `{"id":${value}}`),
    ),
  }));

  it("lets no value of a dropped or hashed field out, in any spelling, and is JSON that obeys the schema", () => {
    const given = privacy(["gone"], ["h"]);
    const rewrite = given.rewriter("companies");
    const isValid = new Ajv({ strict: false }).compile(
      leaving(given, "companies", { type: "object", properties: { gone: {}, h: { type: "integer" } } }),
    );
    fc.assert(
      fc.property(object, (json) => {
        const line = asRead(rewrite?.(rawLine(json)) ?? "");
        const everything = JSON.stringify(JSON.parse(line));
        expect(line).not.toContain("4242424242");
        expect(line.replaceAll(/\\u[0-9a-f]{4}/g, (found) => JSON.parse(`"${found}"`))).not.toContain(MARK);
        expect(everything).not.toContain(MARK);
        expect(everything).not.toContain('"gone"');
        if (!Array.isArray(JSON.parse(line).h)) expect(isValid(JSON.parse(line))).toBe(true);
        expect(line.match(/9007199254740993/g)?.length ?? 0).toBe(
          json.match(/9007199254740993/g)?.length ?? 0,
        );
      }),
      { numRuns: 2000 },
    );
  });
});

describe("only_fields", () => {
  it("lets out what is named, the key and the cursor, and nothing that the service adds", () => {
    const json = row({ id: "1", email: "e", lastName: "l", tomorrow: { email: "x" }, discoveredAt: "d" });
    expect(sent(only(["email"]), "people", json)).toEqual({ id: "1", email: "e", discoveredAt: "d" });
    expect(sent(only(["people.email"]), "people", json)).toEqual({ id: "1", email: "e", discoveredAt: "d" });
    expect(sent(only(["email"], ["people.email"]), "people", json)).toEqual({ id: "1", discoveredAt: "d" });
    expect(sent(only(["email"]), "companies", '{"domain":"d","name":"n"}')).toEqual({ domain: "d" });
    expect(only(["people.email"]).rewriter("companies")).toBeNull();
    expect(only(["email", "companies.*"]).rewriter("companies")).toBeNull();
  });

  it("names the leaves of an object, or all of it", () => {
    const json = row({
      domain: "d",
      hq: { city: "c", street: "s", geo: { lat: 1 } },
      x: [{ a: 1, b: 2 }, 3],
    });
    const of = (...names: string[]): unknown => sent(only(names), "companies", json);
    expect(of("companies.hq.city", "companies.x.a")).toEqual({
      domain: "d",
      hq: { city: "c" },
      x: [{ a: 1 }, null],
    });
    expect(of("companies.hq.*")).toEqual({ domain: "d", hq: { city: "c", street: "s", geo: { lat: 1 } } });
    expect(of("companies.hq", "companies.x")).toEqual({ domain: "d", hq: {}, x: [{}, 3] });
  });

  it.each(['{"hq":"secret"}', '{"hq":["secret",{"city":"c"},["secret"]]}', '{"h\\u0071":7}'])(
    "withholds in %s what stands where only an inner field was named",
    (json) => {
      const given = only(["companies.hq.city"]);
      const left = JSON.stringify(sent(given, "companies", json));
      expect(left).not.toMatch(/secret|7/);
      const rewrite = given.rewriter("companies");
      if (json.includes("u0071") || json.includes("{", 1)) return;
      expect(rewrite?.(json, ["hq"])).toBe(rewrite?.(json));
    },
  );

  it("holds in schemas, with keys and cursors", () => {
    const { properties } = leaving(only(["email"]), "people", loadSchema("people"));
    expect(Object.keys(properties ?? {})).toEqual(["id", "email", "discoveredAt"]);
    const job = leaving(only(["contacts.email"]), "company_lookups", loadSchema("company_lookups"));
    expect(Object.keys(job.properties ?? {}).toSorted()).toEqual(["contacts", "created_at", "job_id"]);
    expect(Object.keys(job.properties?.["contacts"]?.items?.properties ?? {})).toEqual(["email"]);
  });

  it("refuses a name that no schema has, unless it is of a stream whose fields only the service knows", () => {
    expect(() => only(["emial"])).toThrow('only_fields "emial" names a field that no stream has');
    expect(() => only(["people.emial"])).toThrow('"people" does not have. Did you mean "email"?');
    expect(() => only(["nothing_like_it"])).toThrow("Name a stream whose fields are not declared");
    expect(() => only(["people..x"])).toThrow("is no field name");
    expect(only(["companies.anything"]).rewriter("companies")).not.toBeNull();
  });
});

describe("names of fields", () => {
  const NAMES = [
    ...["email", "people.email", "id", "people.id", "domain", "companies.domain", "sources.slug", "slug"],
    ...[
      "discoveredAt",
      "people.discoveredAt",
      "companies.discoveredAt",
      "sources.discoveredAt",
      "created_at",
    ],
    ...["company_lookups.created_at", "email_checks.email", "email_checks.source", "source", "job_id"],
    ...["company_lookup_contacts.position", "position", "sync_windows.id", "sync_windows.stream", "rows"],
    ...["people.emial", "emial", "people.nothing_like_it", "nothing_like_it", "companies.anything.at.all"],
    ...[
      "company_lookups.contacts.email",
      "company_lookups.contacts.emial",
      "contacts.email",
      "contacts.emial",
    ],
    ...[
      "contacts",
      "company_lookups.contacts.*",
      "contacts.*",
      "people.*",
      "*",
      "companies.*",
      "companies.a.*",
    ],
    ...["people.email.inner", "people.sources", "people.sources.inner", "people", "companies", "firstname"],
    ...["", ".", "people.", ".email", "people..email", "a.b", "people.id.inner", "domain.inner", "toString"],
    ...[
      "people.toString",
      "email_verifications.response",
      "email_verifications.response.inner",
      "response.a",
    ],
  ];

  it("are refused, taken, or left for live rows to tell: golden/field-names.txt", async () => {
    const settings = { onlyFields: [], dropFields: [], hashFields: [], hashSalt: SALT };
    const answer = (setting: object, jobs: typeof JOBS | typeof NO_JOBS): string => {
      try {
        const { undeclared } = new Privacy({ ...jobs, ...settings, ...setting });
        return undeclared.length > 0 ? "live rows must tell" : "taken";
      } catch (error) {
        return (error as Error).message;
      }
    };
    const lines = NAMES.flatMap((name) =>
      ["onlyFields", "dropFields", "hashFields"].flatMap((list) => {
        const [alone, more] = [NO_JOBS, JOBS].map((jobs) => answer({ [list]: [name] }, jobs));
        const about = `${list} ${JSON.stringify(name)}: ${alone}`;
        return more === alone ? [about] : [about, `  with jobs: ${more}`];
      }),
    );
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/field-names.txt");
  });

  it("are refused all at once, by the place of the first list that is wrong", () => {
    const refused = (origins: Record<string, string>): string => {
      try {
        const lists = { onlyFields: ["people.emial"], dropFields: ["email", "people.id"], hashFields: [""] };
        return String(
          new Privacy({ ...NO_JOBS, ...lists, hashSalt: SALT, origins: new Map(Object.entries(origins)) }),
        );
      } catch (error) {
        return (error as Error).message;
      }
    };
    const problems =
      'only_fields "people.emial" names a field that "people" does not have. Did you mean "email"?; ' +
      'drop_fields "people.id" names the primary key of "people", which cannot be dropped: tables are merged by it; ' +
      'hash_fields "" is no field name';
    expect(refused({})).toBe(`Cannot use the config: ${problems}`);
    expect(refused({ hash_fields: "here", drop_fields: "there" })).toBe(`Cannot use there: ${problems}`);
    expect(refused({ hash_fields: "here" })).toBe(`Cannot use here: ${problems}`);
  });

  it("that no schema has are refused unless a live row has them, with what they may mean", () => {
    const given = privacy(["taxId", "email", "people.lastName"], ["shoe_size", "emial"]);
    expect(given.undeclared.map(({ name }) => name)).toEqual(["taxId", "shoe_size", "emial"]);
    expect(() => given.refuseUnknown(new Set(["taxId", "shoe_size", "emial"]))).not.toThrow();
    expect(() => given.refuseUnknown(new Set(["tax_Id", "emial"]))).toThrow(
      'Cannot use the config: drop_fields "taxId" names a field that no stream of this account has. ' +
        'Did you mean "tax_Id"?; hash_fields "shoe_size" names a field that no stream of this account has',
    );
    expect(() => given.refuseUnknown(new Set(["taxId", "shoe_size"]))).toThrow('Did you mean "email"?');
  });

  it("that no row had are warned of, each by its list and its stream", () => {
    const given = privacy(["companies.ssn", "tax.id", "emial"], ["sources.secret", "people.email"]);
    const warningOf = (name: string, list: string): string =>
      `No row had a field "${name}", which ${list} names: check its spelling`;
    expect(given.unused()).toEqual([]);
    given.rewriter("sources")?.('{"slug":"s","tax":{"id":1}}');
    expect(given.unused()).toEqual([
      warningOf("emial", "drop_fields"),
      warningOf("sources.secret", "hash_fields"),
    ]);
    given.rewriter("companies")?.('{"domain":"d","emial":1}');
    expect(given.unused()).toEqual([
      warningOf("companies.ssn", "drop_fields"),
      warningOf("sources.secret", "hash_fields"),
    ]);
    given.rewriter("sources")?.('{"secret":1}');
    given.rewriter("companies")?.('{"ssn":null}');
    expect(given.unused()).toEqual([]);
  });

  it("to let out that none of the first thousand rows had are warned of, with what they may mean", () => {
    const given = only(["companies.employeCount", "companies.hq.citty", "companies.domain", "companies.x.*"]);
    const rewrite = given.rewriter("companies");
    const warningOf = (name: string, rows: string, meant = ""): string =>
      `only_fields "${name}" names a field that none of ${rows} of "companies" had${meant}`;
    rewrite?.('{"domain":"d","hq":[{"city":1}]}');
    expect(given.unused()).toEqual([
      warningOf("companies.employeCount", "the rows"),
      warningOf("companies.hq.citty", "the rows", '. Did you mean "hq.city"?'),
      warningOf("companies.x.*", "the rows"),
    ]);
    for (let nth = 1; nth < 999; nth++) rewrite?.('{"domain":"d"}');
    rewrite?.('{"x":1,"employeeCount":1}');
    for (let nth = 0; nth < 2; nth++) rewrite?.('{"employeCount":1,"hq":{"citty":1}}');
    expect(given.unused()).toEqual([
      warningOf("companies.employeCount", "the first 1000 rows", '. Did you mean "employeeCount"?'),
      warningOf("companies.hq.citty", "the first 1000 rows", '. Did you mean "hq.city"?'),
    ]);
    expect(only(["companies.*", "companies.other"]).unused()).toEqual([]);
  });
});

it.each([
  [["email"], [], [], "***"],
  [["people.email"], [], [], "***"],
  [[], ["email"], [], digest("j\u00f6 <a@b>")],
  [[], ["companies.email"], [], null],
  [["email.inner"], [], [], null],
  [["email"], ["people.email"], [], "***"],
  [[], [], ["firstName"], "***"],
  [[], [], ["email"], null],
  [[], ["email"], ["email"], digest("j\u00f6 <a@b>")],
  [[], [], ["companies.*"], null],
])(
  "what repeats an e-mail elsewhere is, under drop_fields %j, hash_fields %j and only_fields %j: %j",
  (...of) => {
    const [dropFields, hashFields, onlyFields, echo] = of;
    const given = new Privacy({ ...NO_JOBS, onlyFields, dropFields, hashFields, hashSalt: SALT });
    const echoOf = given.echoOf("people", "email");
    expect(echoOf === null ? null : echoOf("j\u00f6 <a@b>")).toBe(echo);
  },
);

it.each([
  "s",
  "x".repeat(63),
  "x".repeat(64),
  "x".repeat(65),
  "\u00e9".repeat(32),
  "\u00e9".repeat(33),
  "x".repeat(500),
])("a hash is the HMAC-SHA-256 of the bytes by the salt %.70j, however long they are", (hashSalt) => {
  const given = new Privacy({ ...NO_JOBS, onlyFields: [], dropFields: [], hashFields: ["x"], hashSalt });
  for (const length of [0, 1, 55, 56, 63, 64, 65, 4_095, 4_096, 4_097, 9_000, 3])
    for (const text of ["a".repeat(length), "\u00e9".repeat(length)])
      expect(sent(given, "people", row({ x: text }))).toEqual({
        x: createHmac("sha256", hashSalt).update(text, "utf8").digest("hex"),
      });
});

describe("fieldNamesOf()", () => {
  it("names what is in a row by every end of its path, of at most eight parts", () => {
    const value = { a: { b: [1, { c: null }] }, d: [] };
    expect([...fieldNamesOf(value, new Set())]).toEqual(["a", "a.b", "b", "a.b.c", "b.c", "c", "d"]);
    const deep = [..."abcdefghij"].reduceRight<unknown>((inner, name) => ({ [name]: inner }), 1);
    const names = fieldNamesOf(deep, new Set(["before"]));
    expect([names.has("before"), names.has("c.d.e.f.g.h.i.j"), names.has("b.c.d.e.f.g.h.i.j")]).toEqual([
      ...[true, true, false],
    ]);
    expect(Math.max(...[...names].map((name) => name.split(".").length))).toBe(8);
    expect(names.size).toBe(1 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 8 + 8);
  });
});

describe("catalogConflicts()", () => {
  it.each<[string, JsonSchema, boolean]>([
    ["a text", { type: "string" }, false],
    ["a text or null", { type: ["null", "string"] }, false],
    ["anything", {}, false],
    ["a list of texts", { type: ["array"], items: { type: "string" } }, false],
    ["a list of lists of texts", { type: "array", items: { items: { type: "string" } } }, false],
    ["a number", { type: "number" }, true],
    ["a text or a number", { type: ["string", "number"] }, true],
    ["a date", { type: "string", format: "date" }, true],
    ["one of some words", { type: "string", enum: ["a"] }, true],
    ["a list of numbers", { type: "array", items: { type: "integer" } }, true],
    ["a list of dates", { items: { format: "date" } }, true],
    ["an object", { type: "object" }, true],
  ])("takes for a hashed field %s", (_, schema, isMistyped) => {
    const rules = privacy([], ["h"]).rules("people");
    if (rules === null) throw new Error("no rules");
    const conflicts = catalogConflicts(
      { properties: { a: { properties: { h: schema } }, h: schema } },
      rules,
    );
    expect(conflicts).toEqual({ mistyped: isMistyped ? ["a.h", "h"] : [], dropped: [] });
  });
});

describe("only_fields and drop_fields, level by level", () => {
  const ROW = {
    id: "1",
    a: { b: 1, c: { d: 2, e: 3 }, f: [{ d: 4, g: 5 }, null, 6, [{ d: 7 }]] },
    b: { c: 8 },
    c: [9, { d: 10 }],
    d: 11,
  };

  it("lets out what golden/let-out.txt says", async () => {
    const names = [
      "a",
      "a.*",
      "a.b",
      "a.c",
      "a.c.d",
      "a.c.*",
      "a.f",
      "a.f.d",
      "a.b.x",
      "b",
      "b.c",
      "c",
      "c.d",
      "d",
      "*",
    ];
    const pairs = names.flatMap((name, nth) => [
      [name],
      ...names.slice(nth + 1, nth + 4).map((more) => [name, more]),
    ]);
    const lines = pairs.map((pair) => {
      const given = only(pair.map((name) => `companies.${name}`));
      return `only ${pair.join(" ")}: ${JSON.stringify(sent(given, "companies", row({ domain: "d", ...ROW })))}`;
    });
    const dropped = pairs
      .filter((pair) => !pair.some((name) => name.includes("*")))
      .flatMap((pair) => [pair, pair.map((name) => `companies.${name}`)])
      .map((pair) => `drop ${pair.join(" ")}: ${JSON.stringify(sent(privacy(pair), "companies", row(ROW)))}`);
    await expect(`${[...lines, ...dropped].join("\n")}\n`).toMatchFileSnapshot("../../golden/let-out.txt");
  });
});
