import { domainToASCII } from "node:url";

/** What an item is: a domain for company look-ups, an address for e-mail checks and verifications. */
export type ItemKind = "domain" | "email";

/** One entry of a list. `item` null: it is no domain or address, and is never sent. */
export type Entry = {
  readonly item: string | null;
  readonly kind: ItemKind;
  /** As it was written. */
  readonly text: string;
};

/** Stands beside every digest. A change of the rules below needs a new number, or everything is bought again. */
export const NORMALIZATION = 1;

const ZERO_WIDTH = /[\u00ad\u200b-\u200f\u2060\ufeff]/g;
const QUOTES = /["'`\u2018\u2019\u201c\u201d\u00ab\u00bb]/g;
const LIST = /[,\r\n]/;
const HOST = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$/;
const ADDRESS = /^[^\s@"(),:;<>[\]\\]{1,64}@[^\s@"(),:;<>[\]\\]+\.[^\s@"(),:;<>[\]\\]+$/;
const LONGEST_ITEM = 254;

/** The entries of a text, which may be a list of items with commas or line breaks between them. */
export function entriesOf(kind: ItemKind, text: string): Entry[] {
  const parts = LIST.test(text) ? text.split(LIST) : [text];
  return parts
    .filter((part) => part.trim() !== "")
    .map((part) => ({ item: normalizeItem(kind, part), kind, text: part }));
}

/** The one spelling of an item; null for what is no host name or no address. */
export const normalizeItem = (kind: ItemKind, text: string): string | null =>
  kind === "domain" ? toDomain(text) : toAddress(text);

function toDomain(text: string): string | null {
  const bare = text.replace(ZERO_WIDTH, "").replace(QUOTES, "").trim().toLowerCase().replace(/\.$/, "");
  // Characters that end a host name in a URL would cut the name short.
  if (/[\s/\\?#@:%[\]]/.test(bare)) return null;
  // Dots of other scripts are dots only now.
  const ascii = domainToASCII(bare).replace(/\.$/, "");
  const rest = ascii.replace(/^www\./, "");
  const host = rest.includes(".") ? rest : ascii;
  const isHost = HOST.test(host) && host.length <= LONGEST_ITEM && !/^[\d.]+$/.test(host);
  return isHost ? host : null;
}

function toAddress(text: string): string | null {
  const address = text.replace(ZERO_WIDTH, "").trim().normalize("NFC").toLowerCase();
  return ADDRESS.test(address) && address.length <= LONGEST_ITEM && !/\p{Surrogate}/u.test(address)
    ? address
    : null;
}

/** The spellings under which version 0.1.0 may have bought an item: it took a trimmed text in lower case for the item itself. */
export function oldSpellingsOf({ item, kind, text }: Entry): readonly string[] {
  const old = text.trim().toLowerCase();
  if (item === null) return [old];
  const spellings = kind === "domain" ? [item, `www.${item}`, `${item}.`, `www.${item}.`] : [item];
  return [...new Set([old, ...spellings])];
}
