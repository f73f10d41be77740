import { asciiJson } from "./language.ts";

const MASK = "***";

/** Shorter texts are no secrets: masking them would only garble the output. */
const MIN_LENGTH = 6;

const KEY = /_([0-9a-f]{8})_([0-9a-f]{32})$/i;

/**
 * Replaces each secret wherever it stands in a text: whole, in part (the segments of a key), in upper or lower case, as
 * hex or base64, or escaped as URLs and JSON escape. A secret that is a part of a word of the protocols stays as it is:
 * the output would no longer mean anything.
 */
export function secretMask(secrets: readonly string[]): (text: string) => string {
  const maskable = secrets.filter((secret) => secret.length >= MIN_LENGTH && !isProtocolWord(secret));
  const patterns = maskable.flatMap(patternsOf);
  if (patterns.length === 0) return (text) => text;
  const longestFirst = [...new Set(patterns)].toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.join("|"), "g");
  return (text) => text.replace(pattern, MASK);
}

/** Names that the messages of every language are made of. */
const PROTOCOL_WORDS = [
  ...["people", "companies", "sources", "company_lookups", "company_lookup_contacts", "email_checks"],
  ...[
    "email_verifications",
    "discoveredAt",
    "missing_days",
    "undated_checked",
    "undated_rows",
    "full_refresh",
  ],
  ...["RECORD", "STATE", "SCHEMA", "TRACE", "CATALOG", "CONNECTION_STATUS", "ACTIVATE_VERSION", "SUCCEEDED"],
  ...[
    "stream_descriptor",
    "stream_state",
    "stream_status",
    "STREAM_STATUS",
    "STARTED",
    "RUNNING",
    "COMPLETE",
  ],
  ...[
    "INCOMPLETE",
    "RATE_LIMITED",
    "rate_limited",
    "quota_reset",
    "sourceStats",
    "recordCount",
    "emitted_at",
  ],
  ...["failure_type", "config_error", "transient_error", "system_error", "internal_message", "stack_trace"],
  ...["connectionStatus", "json_schema", "properties", "additionalProperties", "supported_sync_modes"],
  ...["incremental", "source_defined_cursor", "default_cursor_field", "source_defined_primary_key"],
  ...[
    "tap_stream_id",
    "key_properties",
    "replication_key_value",
    "replication_method",
    "bookmarks",
    "message",
  ],
  ...["connectionSpecification", "documentationUrl", "breadcrumb", "metadata", "bookmark_properties"],
  ...["row_estimate", "ESTIMATE", "description", "logger_name", "thread_name", "app_name", "stream_name"],
].map((word) => word.toLowerCase());

function isProtocolWord(secret: string): boolean {
  const folded = secret.toLowerCase();
  return PROTOCOL_WORDS.some((word) => word.includes(folded));
}

function patternsOf(secret: string): readonly string[] {
  const [, short, long] = KEY.exec(secret) ?? [];
  const whole = [
    secret,
    ...(isWhole(secret) ? [encodeURIComponent(secret)] : []),
    JSON.stringify(secret).slice(1, -1),
    asciiJson(secret).slice(1, -1),
    Buffer.from(secret).toString("hex"),
  ];
  const caseless = [...whole, ...(long === undefined ? [] : [long])].map(inAnyCase);
  return [
    ...caseless,
    ...base64Forms(secret).map(escaped),
    ...(short === undefined ? [] : [bounded(inAnyCase(short))]),
  ];
}

/** Whether a text has no half of a surrogate pair, which no URL can hold. */
const isWhole = (text: string): boolean => !/\p{Surrogate}/u.test(text);

/** A pattern of a text in upper or lower case; base64 is told apart by case, so that one flag for all will not do. */
const inAnyCase = (text: string): string =>
  [...text]
    .map((character) => {
      const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
      const isLetter = lower !== upper && lower.length === 1 && upper.length === 1;
      return isLetter ? `[${lower}${upper}]` : escaped(character);
    })
    .join("");

/** Eight hex digits may stand in a longer number or digest by chance: only a whole run of them is the segment. */
const bounded = (hex: string): string => `(?<![0-9A-Fa-f])${hex}(?![0-9A-Fa-f])`;

/** The secret alone, behind `Bearer `, and in the middle of any longer text (which has three alignments). */
function base64Forms(secret: string): readonly string[] {
  const forms = [
    base64(secret),
    base64(`Bearer ${secret}`),
    ...[0, 1, 2].map((shift) => inner(secret, shift)),
  ];
  return forms.flatMap((form) => [form, toBase64Url(form)]);
}

const toBase64Url = (form: string): string =>
  form.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** The base64 digits that depend on the secret's bytes only, whatever stands before and after it. */
function inner(secret: string, shift: number): string {
  const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
  return bytes.toString("base64").slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
}

/** The text for a place in a regular expression. */
const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
