import { timestampWriter } from "./clock.ts";
import { type Company, companyAt } from "./companies.ts";
import type { Row } from "./dataset.ts";
import { hex, mix, pick } from "./random.ts";
import { type Membership, USAGE_SLOTS } from "./sources.ts";
import { wireJson } from "./wire-text.ts";
import { FIRST_NAMES, LAST_NAMES, LOCATIONS, RARE_TITLES, TITLES } from "./words.ts";

export type Person = {
  readonly id: string;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly email: string | null;
  readonly jobTitle: string | null;
  readonly seniority: string | null;
  readonly department: string | null;
  readonly jobFunction: string | null;
  readonly company: string | null;
  readonly companyDomain: string | null;
  readonly companySize: number | null;
  readonly industry: string | null;
  readonly location: string | null;
  readonly country: string | null;
  readonly linkedinUrl: string | null;
  readonly sources: readonly string[];
  readonly discoveredAt: string | null;
};

/**
 * One person as wire text. The person depends on the seed and the index alone; `time` and `usageSlot` say when
 * they were last checked and what they use. Finished pieces of JSON are put together, which is far cheaper than
 * building objects.
 */
export function personWriter(seed: number, companies: number, membership: Membership): (row: Row) => string {
  const timestamp = timestampWriter();
  const employer = employers(seed, companies);
  const salts = [mix(seed + 1), mix(seed + 2), mix(seed + 3)] as const;
  const sources = Array.from({ length: USAGE_SLOTS }, (_, usageSlot) =>
    wireJson(membership.sources(usageSlot)),
  );
  return ({ index, time, usageSlot }) => {
    const a = mix(index ^ salts[0]);
    const b = mix(a ^ salts[1]);
    const c = mix(b ^ salts[2]);
    const first = pick(FIRST, a >>> 8);
    const last = pick(LAST, b >>> 8);
    const { fields, domain } = employer(c >>> 4);
    const mailbox = `${first.ascii}.${last.ascii}`;
    return (
      `{"id":"per_${hex(a)}${hex(b)}","firstName":${first.json},"lastName":${last.json},` +
      `"email":${b % 16 === 0 ? "null" : `"${mailbox}.${index}@${domain}"`},${title(c)},${fields},` +
      `${pick(PLACES, a >>> 12)},"linkedinUrl":${b % 8 === 1 ? "null" : `"https://www.linkedin.com/in/${mailbox}-${hex(c)}"`},` +
      `"sources":${sources[usageSlot]},"discoveredAt":${time === null ? "null" : `"${timestamp(time)}"`}}`
    );
  };
}

type Name = { readonly json: string; readonly ascii: string };

const toName = ([name, ascii]: readonly [string, string]): Name => ({ json: wireJson(name), ascii });

const FIRST = [...FIRST_NAMES.map(toName), { json: "null", ascii: "info" }];
const LAST = [...LAST_NAMES.map(toName), { json: "null", ascii: "team" }];

type TitleWords = readonly [string | null, string | null, string | null, string | null];

const titleFields = ([jobTitle, seniority, department, jobFunction]: TitleWords): string =>
  fieldsOf({ jobTitle, seniority, department, jobFunction });

const COMMON = TITLES.map(titleFields);
const RARE = RARE_TITLES.map(titleFields);
const PLACES = LOCATIONS.map(([location, country]) => fieldsOf({ location, country }));

const title = (hash: number): string => (hash % 97 === 0 ? pick(RARE, hash >>> 8) : pick(COMMON, hash >>> 8));

type Employer = { readonly fields: string; readonly domain: string };

const NO_EMPLOYER: Employer = {
  fields: fieldsOf({ company: null, companyDomain: null, companySize: null, industry: null }),
  domain: "mail.example",
};

const REMEMBERED_EMPLOYERS = 10_000;

/** Chooses an employer by hash; one person in sixteen has none. */
function employers(seed: number, companies: number): (hash: number) => Employer {
  const known = new Map<number, Employer>();
  return (hash) => {
    if (companies === 0 || hash % 16 === 0) return NO_EMPLOYER;
    const index = (hash >>> 4) % companies;
    const found = known.get(index) ?? toEmployer(companyAt(seed, index));
    if (known.size < REMEMBERED_EMPLOYERS) known.set(index, found);
    return found;
  };
}

function toEmployer({ name, domain, employeeCount, industry }: Company): Employer {
  const companySize = employeeCount === null ? null : Math.floor(employeeCount);
  return { fields: fieldsOf({ company: name, companyDomain: domain, companySize, industry }), domain };
}

/** The fields of an object as wire text, without the braces. */
function fieldsOf(fields: Readonly<Record<string, unknown>>): string {
  return wireJson(fields).slice(1, -1);
}
