import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { fieldNamesOf, schemaUnder } from "../../../src/catalog/field-rules.ts";
import { type JsonSchema, loadSchema } from "../../../src/catalog/schema.ts";
import { Privacy } from "../../../src/privacy/privacy.ts";
import { asRead, rawLine } from "../../support/events.ts";

const SALT = "a long random text";
const NO_JOBS = { companyLookup: null, emailVerification: null, emailCheck: null };
const JOBS = { companyLookup: {} as never, emailVerification: {} as never, emailCheck: {} as never };

type Settings = {
  readonly only?: readonly string[];
  readonly drop?: readonly string[];
  readonly hash?: readonly string[];
  readonly jobs?: typeof JOBS | typeof NO_JOBS;
};

const privacy = ({ only = [], drop = [], hash = [], jobs = NO_JOBS }: Settings): Privacy =>
  new Privacy({ ...jobs, onlyFields: only, dropFields: drop, hashFields: hash, hashSalt: SALT });

const digest = (text: string, salt = SALT): string =>
  createHmac("sha256", salt).update(text, "utf8").digest("hex");

/** Returns the row as it leaves. */
function sent(given: Privacy, stream: string, row: object): unknown {
  const rewrite = given.rewriter(stream) ?? ((line: string) => line);
  return JSON.parse(asRead(rewrite(rawLine(JSON.stringify(row)))));
}

const leaving = (given: Privacy, stream: string, schema: JsonSchema): JsonSchema =>
  schemaUnder(given.rules(stream), schema, "leaving");

describe("drop_fields", () => {
  it("take a dot for a step into an object, and never for a part of a name", async () => {
    const given = privacy({ drop: ["companies.hq.city"] });
    const row = { "hq.city": 1, hq: { city: 2, size: 3 } };
    expect(sent(given, "companies", row)).toEqual({ "hq.city": 1, hq: { size: 3 } });
    expect(given.unused()).toEqual([]);
    const dotted = privacy({ drop: ["companies.hq.city", "tax.id"] });
    expect(sent(dotted, "companies", { "hq.city": 1 })).toEqual({ "hq.city": 1 });
    expect(dotted.unused()).toEqual([expect.stringContaining('"companies.hq.city"')]);
    const names = async () => fieldNamesOf([{ "tax.id": 1 }], new Set());
    await expect(dotted.refuseUnknown(names)).rejects.toThrow('"tax.id"');
  });
});

describe("hash_fields", () => {
  it("hash the same value the same way in every stream, keys included", () => {
    const given = privacy({ hash: ["email", "people.id"] });
    const email = "josé@example.com";
    for (const stream of ["people", "email_checks", "companies"])
      expect(sent(given, stream, { email })).toEqual({ email: digest(email) });
    expect(sent(given, "people", { id: "7", n: 1 })).toEqual({ id: digest("7"), n: 1 });
    expect(sent(given, "companies", { id: "7" })).toEqual({ id: "7" });
  });

  it.each(["s", "x".repeat(64), "x".repeat(65), "é".repeat(32), "é".repeat(33), "x".repeat(500)])(
    "give the HMAC-SHA-256 by the salt %.70j of values of every length",
    (hashSalt) => {
      const given = new Privacy({ ...NO_JOBS, onlyFields: [], dropFields: [], hashFields: ["x"], hashSalt });
      for (const length of [0, 1, 55, 56, 63, 64, 65, 4_095, 4_096, 4_097, 9_000, 3])
        for (const text of ["a".repeat(length), "é".repeat(length)])
          expect(sent(given, "people", { x: text })).toEqual({ x: digest(text, hashSalt) });
    },
  );
});

describe("only_fields", () => {
  it("applies to schemas, which keep keys and cursors", () => {
    const people = leaving(privacy({ only: ["email"] }), "people", loadSchema("people")).properties;
    expect(Object.keys(people ?? {})).toEqual(["id", "email", "discoveredAt"]);
    const schema = loadSchema("company_lookups");
    const lookups = leaving(privacy({ only: ["contacts.email"] }), "company_lookups", schema).properties;
    expect(Object.keys(lookups ?? {}).toSorted()).toEqual(["contacts", "created_at", "job_id"]);
    expect(Object.keys(lookups?.["contacts"]?.items?.properties ?? {})).toEqual(["email"]);
  });
});

describe("a name of a setting", () => {
  const LATER = "live rows must tell";

  /** Null: it is taken. */
  async function refusal(settings: Settings): Promise<string | null> {
    try {
      await privacy(settings).refuseUnknown(() => Promise.reject(new Error(LATER)));
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  }

  it.each<[settings: Settings, why: string | null]>([
    [{ drop: ["people.email", "email", "company_lookups.contacts.email"] }, null],
    [{ drop: ["taxId"] }, LATER],
    [{ drop: ["people.id"] }, 'the primary key of "people", which cannot be dropped'],
    [{ drop: ["domain"] }, 'the primary key of "companies", which cannot be dropped'],
    [{ drop: ["domain"] }, 'Name the streams that you mean: "<stream>.domain"'],
    [{ drop: ["discoveredAt"] }, 'the cursor of "people", which cannot be dropped'],
    [{ drop: ["email"], jobs: JOBS }, 'the primary key of "email_checks"'],
    [{ drop: ["people.emial"] }, '"people" does not have. Did you mean "email"?'],
    [{ drop: ["people."] }, "is not a field name"],
    [{ hash: ["email", "people.id"], jobs: JOBS }, null],
    [{ hash: ["people.discoveredAt"] }, 'the cursor of "people", which cannot be hashed'],
    [{ hash: ["company_lookup_contacts.position"] }, "the primary key"],
    [{ only: ["email", "companies.anything", "sources.*", "contacts.email"] }, null],
    [{ only: ["emial"] }, LATER],
    [{ only: ["isVerified"] }, LATER],
    [{ only: ["people.*.email"] }, "is not a field name"],
    [{ drop: ["companies.hq.*"] }, "is not a field name"],
    [{ only: ["people.emial"] }, '"people" does not have'],
    [{ only: ["people..x"] }, "is not a field name"],
  ])("in %j is refused: %j", async (settings, why) => {
    expect(await refusal(settings)).toEqual(why === null ? null : expect.stringContaining(why));
  });

  it("that no schema has is refused unless a live row has it, with what it may mean", async () => {
    const refuse = (given: Privacy, ...live: readonly string[]) =>
      given.refuseUnknown(async () => new Set(live));
    const given = privacy({ drop: ["taxId", "email"], hash: ["emial"] });
    await refuse(given, "taxId", "emial");
    await expect(refuse(given, "tax_Id")).rejects.toThrow(
      /drop_fields "taxId" .* Did you mean "tax_Id"\?; hash_fields "emial" .* Did you mean "email"\?$/,
    );
    const only = privacy({ only: ["hq.*", "*"] });
    await refuse(only, "hq");
    await expect(refuse(only)).rejects.toThrow(/only_fields "hq\.\*" names a field that no stream/);
  });

  it("that no row had is warned of once rows came, by its list", () => {
    const given = privacy({ drop: ["companies.ssn", "tax.id", "email"], hash: ["sources.secret"] });
    expect(given.unused()).toEqual([]);
    given.rewriter("sources")?.('{"slug":"s","tax":{"id":1}}');
    expect(given.unused()).toEqual([expect.stringMatching(/"sources.secret", which hash_fields names/)]);
    given.rewriter("companies")?.('{"domain":"d"}');
    expect(given.unused()).toEqual([
      expect.stringMatching(/"companies.ssn", which drop_fields names/),
      expect.stringContaining('"sources.secret"'),
    ]);
    given.rewriter("sources")?.('{"secret":1}');
    given.rewriter("companies")?.('{"ssn":null}');
    expect(given.unused()).toEqual([]);
  });
});

describe("a repetition of an e-mail elsewhere in a row", () => {
  it.each<[settings: Settings, echo: string | null]>([
    [{ drop: ["email"] }, "***"],
    [{ hash: ["email"] }, digest("jö <a@b>")],
    [{ drop: ["email.inner"] }, null],
    [{ only: ["firstName"] }, "***"],
    [{ only: ["email"] }, null],
    [{ hash: ["email"], only: ["email"] }, digest("jö <a@b>")],
  ])("is, under %j, replaced by %j", (settings, echo) => {
    const replace = privacy(settings).replacementFor("people", "email");
    expect(replace === null ? null : replace("jö <a@b>")).toBe(echo);
  });
});
