import { createHmac } from "node:crypto";
import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schemaUnder } from "../../src/catalog/field-rules.ts";
import { Privacy } from "../../src/catalog/privacy.ts";
import { catalogConflicts } from "../../src/catalog/privacy-schema.ts";
import { type JsonSchema, loadSchema, propertiesOf } from "../../src/catalog/schema.ts";
import { asRead, rawLine } from "../support/events.ts";

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
