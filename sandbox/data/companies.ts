import { timestampWriter } from "./clock.ts";
import type { Row } from "./dataset.ts";
import { mix, pick } from "./random.ts";
import { wireJson } from "./wire-text.ts";
import { ADJECTIVES, COMPANY_FORMS, INDUSTRIES, LOCATIONS, NOUNS, TECHNOLOGIES } from "./words.ts";

export type Company = {
  readonly domain: string;
  readonly name: string;
  readonly employeeCount: number | null;
  readonly foundedYear: number;
  readonly industry: string;
  readonly headquarters: {
    readonly city: string | null;
    readonly country: string | null;
    readonly floors: number;
  };
  readonly technologies: readonly string[];
  readonly revenueMillions: number | null;
  readonly description: string | null;
  readonly isPublic: boolean;
  readonly parentDomain: null;
  readonly discoveredAt?: string | null;
};

/** The company with this index: a function of the seed and the index alone. */
export function companyAt(seed: number, index: number): Company {
  const hash = mix(index ^ mix(seed + 101));
  const [city, country] = pick(LOCATIONS, hash >>> 3);
  const name = nameAt(index);
  return {
    domain: domainAt(index),
    name: `${name} ${pick(COMPANY_FORMS, hash)}`,
    employeeCount: employeesAt(index, hash),
    foundedYear: 1900 + (hash % 125),
    industry: pick(INDUSTRIES, hash >>> 5),
    headquarters: { city, country, floors: 1 + (hash % 40) },
    technologies: TECHNOLOGIES.filter((_, bit) => ((hash >>> bit) & 3) === 3),
    revenueMillions: hash % 6 === 0 ? null : (hash % 100_000) / 100,
    description:
      hash % 4 === 0
        ? null
        : `${name}: "we do ${pick(TECHNOLOGIES, hash >>> 7)}", since ${1900 + (hash % 125)}`,
    isPublic: hash % 5 === 0,
    parentDomain: null,
  };
}

/** One company row as wire text, with `discoveredAt` if the records carry it. */
export function companyWriter(seed: number, carriesDate: boolean): (row: Row) => string {
  const timestamp = timestampWriter();
  return ({ index, time }) => {
    const text = wireJson(companyAt(seed, index));
    if (!carriesDate) return text;
    return `${text.slice(0, -1)},"discoveredAt":${time === null ? "null" : `"${timestamp(time)}"`}}`;
  };
}

const WORD_PAIRS = ADJECTIVES.length * NOUNS.length;

function nameAt(index: number): string {
  const round = Math.floor(index / WORD_PAIRS);
  const words = `${capitalized(pick(ADJECTIVES, index))} ${capitalized(pick(NOUNS, index))}`;
  return round === 0 ? words : `${words} ${round + 1}`;
}

const domainAt = (index: number): string => `${nameAt(index).toLowerCase().replaceAll(" ", "-")}.example`;

/** A number of people, but for a few companies an average with a fraction, and for some nothing. */
function employeesAt(index: number, hash: number): number | null {
  if (index % 11 === 10) return null;
  return 1 + (hash % 5000) + (index % 17 === 16 ? 0.5 : 0);
}

const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
