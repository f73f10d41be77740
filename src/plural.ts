/** A number for a person: "1,204", "0.3". The first use of a locale takes Node 10 ms, so there is none. */
export const shown = (count: number): string =>
  String(Number.isInteger(count) ? count : Number(count.toFixed(3))).replace(
    /(?<!\.\d*)\B(?=(?:\d{3})+(?!\d))/g,
    ",",
  );

/** A number with its noun: "1 row", "2,003 rows". */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${shown(count)} ${count === 1 ? one : many}`;
