/** Who uses what repeats with this period along a roster, so that counting by source takes no scan. */
export const PERIOD = 20;

/** A row's place in the period. It alone decides which sources the row's subject was checked for and uses. */
export type Residue = number;

export type IsUser = "all" | "true" | "false";

const RESIDUES: readonly Residue[] = Array.from({ length: PERIOD }, (_, residue) => residue);

export class Membership {
  readonly #slugs: readonly string[];
  readonly #used: readonly (readonly string[])[];
  readonly #checked: readonly (readonly string[])[];

  constructor(slugs: readonly string[]) {
    this.#slugs = slugs;
    this.#used = RESIDUES.map((residue) => slugs.filter((_, source) => uses(residue, source)));
    this.#checked = RESIDUES.map((residue) => slugs.filter((_, source) => wasChecked(residue, source)));
  }

  has(slug: string): boolean {
    return this.#slugs.includes(slug);
  }

  /** The slugs of the sources that rows of this residue confirmedly use. */
  sources(residue: Residue): readonly string[] {
    return this.#used[residue] ?? [];
  }

  /** Which residues the filters let through; undefined when that is all of them. */
  matching(source: string | undefined, isUser: IsUser): readonly boolean[] | undefined {
    if (source === undefined && isUser === "all") return undefined;
    return RESIDUES.map((residue) => {
      const used = this.sources(residue);
      const known = source === undefined || (this.#checked[residue] ?? []).includes(source);
      const user = source === undefined ? used.length > 0 : used.includes(source);
      return known && (isUser === "all" || user === (isUser === "true"));
    });
  }

  /** A residue whose rows use something, or nothing at all. Without sources there are no users. */
  residueFor(isUser: boolean): Residue {
    return RESIDUES.find((residue) => this.sources(residue).length > 0 === isUser) ?? 0;
  }
}

const phase = (residue: Residue): number => (residue * 7) % PERIOD;

function uses(residue: Residue, source: number): boolean {
  return phase(residue) < 16 && (phase(residue) + 3 * source) % 16 < 4;
}

function wasChecked(residue: Residue, source: number): boolean {
  return phase(residue) >= 16 || uses(residue, source) || (phase(residue) + source) % 4 !== 1;
}
