import { domainToASCII } from "node:url";
import { asciiLower } from "../base/text.ts";

/** The kind of an item: a domain for company look-ups, an address for e-mail checks and verifications. */
export type ItemKind = "domain" | "email";

const ZERO_WIDTH = /[\u00ad\u200b-\u200f\u2060\ufeff]/g;
const QUOTES = /["'`\u2018\u2019\u201c\u201d\u00ab\u00bb]/g;
/** Quotes that are never in an address. */
const PLAIN_QUOTES = /["\u201c\u201d\u00ab\u00bb]/g;
/** Quotes that an address may contain, but not at its ends. */
const AT_ENDS = /^[\s'`\u2018\u2019]+|[\s'`\u2018\u2019]*[.\u3002]?[\s'`\u2018\u2019]*$/g;
const LIST = /[,\r\n]/;
/** No label begins or ends with a hyphen. A top-level domain has at least two letters, and letters only. */
const HOST = /^((?!-)[a-z0-9_-]{1,63}(?<!-)\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{0,58}[a-z0-9])$/;
const ADDRESS = /^[^\s@"(),:;<>[\]\\]{1,64}@[^\s@"(),:;<>[\]\\]+\.[^\s@"(),:;<>[\]\\]+$/;
const LONGEST_ITEM = 254;

/** The items of a text with commas or line breaks. Null: not a domain or address, and never sent. */
export const itemsOf = (kind: ItemKind, text: string): (string | null)[] =>
  text
    .split(LIST)
    .filter((part) => part.trim() !== "")
    .map((part) => normalizeItem(kind, part));

/** The normal form of an item; null if the item is not a host name or an address. */
export const normalizeItem = (kind: ItemKind, text: string): string | null =>
  kind === "domain" ? toHost(text, /^www\./) : toAddress(text);

/** Removes `prefix` if the rest still has a dot. */
function toHost(text: string, prefix: RegExp | string): string | null {
  const bare = text.replace(ZERO_WIDTH, "").replace(QUOTES, "").trim().replace(/\.$/, "");
  // Characters that end a host name in a URL would cut the name.
  if (/[\s/\\?#@:%[\]]/.test(bare)) return null;
  // domainToASCII makes dots of other scripts plain dots.
  const ascii = domainToASCII(bare).replace(/\.$/, "");
  const rest = ascii.replace(prefix, "");
  const host = rest.includes(".") ? rest : ascii;
  return HOST.test(host) && host.length <= LONGEST_ITEM ? host : null;
}

function toAddress(text: string): string | null {
  // Refuses signs such as the Kelvin sign. The sign would become a K, and two different names would be equal.
  if ([...text].some((sign) => sign.normalize("NFC") !== sign)) return null;
  const bare = text.replace(ZERO_WIDTH, "").replace(PLAIN_QUOTES, "").replace(AT_ENDS, "").normalize("NFC");
  const at = bare.lastIndexOf("@") + 1;
  const host = toHost(bare.slice(at), "");
  const address = `${asciiLower(bare.slice(0, at))}${host}`;
  if (host === null || !ADDRESS.test(address) || address.length > LONGEST_ITEM) return null;
  // Refuses U+FFFD, which replaces bytes that are not UTF-8. In a file of another encoding the name would be wrong.
  return /[\p{Surrogate}\ufffd]/u.test(address) ? null : address;
}
