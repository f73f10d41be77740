/** The UTF-8 bytes of a text, one byte a character. */
export const toLatin1 = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

/** The text of UTF-8 bytes, one byte a character. */
export const fromLatin1 = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8");

/** A number for a person: "1,204", "0.3". The first use of a locale takes Node 10 ms, so there is none. */
export const shown = (count: number): string =>
  String(Number.isInteger(count) ? count : Number(count.toFixed(3))).replace(
    /(?<!\.\d*)\B(?=(?:\d{3})+(?!\d))/g,
    ",",
  );

/** A number with its noun: "1 row", "2,003 rows". */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${shown(count)} ${count === 1 ? one : many}`;

/** Lines of a table for a person: columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** The most similar of some names; undefined: none is similar. */
export function nearestName(name: string, names: Iterable<string>): string | undefined {
  const wanted = plain(name);
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const near = [...names].map((candidate) => ({ candidate, distance: distanceOf(wanted, plain(candidate)) }));
  const [first] = near.filter(({ distance }) => distance <= most).sort((a, b) => a.distance - b.distance);
  return first?.candidate;
}

/** `startDate`, `start-date` and `START_DATE` differ only in how they are written. */
export const plain = (name: string): string =>
  name
    .slice(0, 100)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");

/** How many letters must be added, removed, changed or swapped with the next. */
export function distanceOf(a: string, b: string): number {
  let [before, above]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (above?.[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before?.[j - 2] ?? 0) + 1 : changed;
      row.push(Math.min((above?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, changed, swapped));
    }
    [before, above] = [above, row];
  }
  return above?.at(-1) ?? 0;
}
