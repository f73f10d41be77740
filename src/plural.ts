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
