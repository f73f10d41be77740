import { domainToASCII } from "node:url";
import { asciiLower } from "../base/text.ts";

/** The kind of an item: a domain for company look-ups, an address for e-mail checks and verifications. */
export type ItemKind = "domain" | "email";

const ZERO_WIDTH = /[\u00ad\u200b-\u200f\u2060\ufeff]/g;
const QUOTES = /["'`\u2018\u2019\u201c\u201d\u00ab\u00bb]/g;
/** Those that no address has, and those that an address may have, but hardly at its ends. */
const PLAIN_QUOTES = /["\u201c\u201d\u00ab\u00bb]/g;
const AT_ENDS = /^[\s'`\u2018\u2019]+|[\s'`\u2018\u2019]*[.\u3002]?[\s'`\u2018\u2019]*$/g;
const LIST = /[,\r\n]/;
/** No label begins or ends with a hyphen. A top-level domain has two letters or more, and nothing but letters. */
const HOST = /^((?!-)[a-z0-9_-]{1,63}(?<!-)\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{0,58}[a-z0-9])$/;
const ADDRESS = /^[^\s@"(),:;<>[\]\\]{1,64}@[^\s@"(),:;<>[\]\\]+\.[^\s@"(),:;<>[\]\\]+$/;
const LONGEST_ITEM = 254;

/** The items of a text, which may be a list with commas or line breaks between them. Null: no domain or address, never sent. */
export const itemsOf = (kind: ItemKind, text: string): (string | null)[] =>
  text
    .split(LIST)
    .filter((part) => part.trim() !== "")
    .map((part) => normalizeItem(kind, part));

/** The normal form of an item; null if it is not a host name or an address. */
export const normalizeItem = (kind: ItemKind, text: string): string | null =>
  kind === "domain" ? toHost(text, /^www\./) : toAddress(text);

/** `prefix`: what goes if a name with a dot is left. */
function toHost(text: string, prefix: RegExp | string): string | null {
  const bare = text.replace(ZERO_WIDTH, "").replace(QUOTES, "").trim().replace(/\.$/, "");
  // Characters that end a host name in a URL would cut the name short.
  if (/[\s/\\?#@:%[\]]/.test(bare)) return null;
  // Dots of other scripts are dots only now.
  const ascii = domainToASCII(bare).replace(/\.$/, "");
  const rest = ascii.replace(prefix, "");
  const host = rest.includes(".") ? rest : ascii;
  return HOST.test(host) && host.length <= LONGEST_ITEM ? host : null;
}

function toAddress(text: string): string | null {
  // Such as the sign of Kelvin, which would become a K: two names would be one.
  if ([...text].some((sign) => sign.normalize("NFC") !== sign)) return null;
  const bare = text.replace(ZERO_WIDTH, "").replace(PLAIN_QUOTES, "").replace(AT_ENDS, "").normalize("NFC");
  const at = bare.lastIndexOf("@") + 1;
  const host = toHost(bare.slice(at), "");
  const address = `${asciiLower(bare.slice(0, at))}${host}`;
  if (host === null || !ADDRESS.test(address) || address.length > LONGEST_ITEM) return null;
  // U+FFFD replaces bytes that are not UTF-8: a file in another encoding names another person.
  return /[\p{Surrogate}\ufffd]/u.test(address) ? null : address;
}
