/** A number for a person: "1,204". */
export const shown = (count: number): string => count.toLocaleString("en-US");

/** A number with its noun: "1 row", "2,003 rows". */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${shown(count)} ${count === 1 ? one : many}`;
