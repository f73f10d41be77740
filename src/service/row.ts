import type { Matched } from "../source/line-pattern.ts";
import type { RawLine } from "../sync/event.ts";
import type { Row } from "../sync/ports.ts";

/** How rows of a stream are told apart and checked. */
export type RowReader = {
  readonly key: string;
  readonly cursor: string | null;
  /** What a row without its key means: the body is unclean, or it is passed on or dropped, and `keyless` told of it. */
  readonly withoutKey: "unclean" | "pass" | "drop";
  readonly keyless: () => void;
  /** Knows a usual row by its line. What does not match is parsed and checked. */
  readonly match: (line: string) => Matched | undefined;
  /** Looks at a parsed row for what its schema does not say. */
  readonly check: (row: Readonly<Record<string, unknown>>) => void;
  /** Told of each escaped half of a surrogate pair that was replaced. */
  readonly replaced: () => void;
};

/** A parsed line as a row; undefined for one that is not passed on. An empty object is none: platforms drop it uncounted. */
export function toRow(
  raw: RawLine,
  value: Readonly<Record<string, unknown>>,
  reader: RowReader,
): Row | "unclean" | undefined {
  reader.check(value);
  const key = keyOf(value[reader.key]);
  if (key === "") {
    if (reader.withoutKey === "unclean") return "unclean";
    reader.keyless();
    if (reader.withoutKey === "drop" || raw === "{}") return undefined;
  }
  const cursor = reader.cursor === null ? null : value[reader.cursor];
  return { raw, key, cursor: typeof cursor === "string" && cursor !== "" ? cursor : null };
}

function keyOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}
