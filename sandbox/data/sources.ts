export type SourceRecord = {
  readonly slug: string;
  readonly name: string;
  readonly category: string;
  readonly website: string;
  readonly description: string | null;
  readonly addedAt: string;
};

const PRODUCTS = [
  ["Harborline CRM", "crm"],
  ["Signaldesk", "support"],
  ["Quillmetrics", "analytics"],
  ["Paylark", "payments"],
  ["Cloudmoor", "hosting"],
  ["Inkwell Sign", "documents"],
  ["Tandem Chat", "communication"],
  ["Brightform", "surveys"],
] as const;

/** The products that the service tracks. */
export function sourceRecords(count: number): SourceRecord[] {
  return Array.from({ length: count }, (_, index) => sourceRecord(index));
}

function sourceRecord(index: number): SourceRecord {
  const round = Math.floor(index / PRODUCTS.length);
  const [product, category] = PRODUCTS[index % PRODUCTS.length] ?? PRODUCTS[0];
  const name = round === 0 ? product : `${product} ${round + 1}`;
  const slug = name.toLowerCase().replaceAll(" ", "-");
  return {
    slug,
    name,
    category,
    website: `https://${slug}.example`,
    description: index % 3 === 2 ? null : `${name}, as used by teams that do ${category}`,
    addedAt: new Date(Date.UTC(2020, index % 12, 1 + (index % 28))).toISOString(),
  };
}

/** The use of sources repeats after this number of rows of a dataset, so that counting by source needs no scan. */
export const USAGE_SLOTS = 20;

/** A row's index modulo USAGE_SLOTS. It alone decides which sources a person was checked for, and which they use. */
export type UsageSlot = number;

export type IsUser = "all" | "true" | "false";

const SLOTS: readonly UsageSlot[] = Array.from({ length: USAGE_SLOTS }, (_, slot) => slot);

export class Membership {
  readonly #slugs: readonly string[];
  readonly #used: readonly (readonly string[])[];
  readonly #checked: readonly (readonly string[])[];

  constructor(slugs: readonly string[]) {
    this.#slugs = slugs;
    this.#used = SLOTS.map((slot) => slugs.filter((_, source) => uses(slot, source)));
    this.#checked = SLOTS.map((slot) => slugs.filter((_, source) => wasChecked(slot, source)));
  }

  has(slug: string): boolean {
    return this.#slugs.includes(slug);
  }

  /** The slugs of the sources that people of this slot are confirmed users of. */
  sources(slot: UsageSlot): readonly string[] {
    return this.#used[slot] ?? [];
  }

  /** Which slots match the filters, by slot; undefined if all do. */
  matching(source: string | undefined, isUser: IsUser): readonly boolean[] | undefined {
    if (source === undefined && isUser === "all") return undefined;
    return SLOTS.map((slot) => {
      const used = this.sources(slot);
      const known = source === undefined || (this.#checked[slot] ?? []).includes(source);
      const user = source === undefined ? used.length > 0 : used.includes(source);
      return known && (isUser === "all" || user === (isUser === "true"));
    });
  }

  /** A slot of people who use something, or who use nothing. Without sources no one uses anything. */
  slotFor(isUser: boolean): UsageSlot {
    return SLOTS.find((slot) => this.sources(slot).length > 0 === isUser) ?? 0;
  }
}

const phase = (slot: UsageSlot): number => (slot * 7) % USAGE_SLOTS;

function uses(slot: UsageSlot, source: number): boolean {
  return phase(slot) < 16 && (phase(slot) + 3 * source) % 16 < 4;
}

function wasChecked(slot: UsageSlot, source: number): boolean {
  return phase(slot) >= 16 || uses(slot, source) || (phase(slot) + source) % 4 !== 1;
}
