import { fingerprint } from "../base/text.ts";

/** The newest keys that a run has shown. */
export type Witness = {
  /** Digests of the keys. */
  readonly keys: readonly string[];
  /** The oldest of their cursors. */
  readonly cursor: string;
  /** A digest of the id of the API key under which they were shown. */
  readonly key: string;
};

const MOST_KEYS = 8;
/** They are sorted out when so many have come together: a row should cost nothing. */
const MOST_WAITING = 256;

/** Keeps the newest keys of a run: who has them knows the organization again, wherever its people have moved since. */
export class NewestKeys {
  #kept: { readonly key: string; readonly at: number }[] = [];
  #oldest = Number.NEGATIVE_INFINITY;

  /** @param at epoch ms */
  see(key: string, at: number): void {
    if (!(at > this.#oldest)) return;
    this.#kept.push({ key, at });
    if (this.#kept.length >= MOST_WAITING) this.#sortOut();
  }

  /** Null if no row was seen. @param key a digest of the API key's id */
  witness(key: string): Witness | null {
    this.#sortOut();
    const oldest = this.#kept.at(-1);
    if (oldest === undefined) return null;
    const keys = this.#kept.map((one) => fingerprint(one.key));
    return { keys, cursor: new Date(oldest.at).toISOString(), key };
  }

  #sortOut(): void {
    this.#kept.sort((a, b) => b.at - a.at);
    const newest = new Map(this.#kept.toReversed().map((one) => [one.key, one]));
    this.#kept = [...newest.values()].sort((a, b) => b.at - a.at).slice(0, MOST_KEYS);
    if (this.#kept.length === MOST_KEYS) this.#oldest = this.#kept.at(-1)?.at ?? this.#oldest;
  }
}
