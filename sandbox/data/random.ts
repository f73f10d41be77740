/** A bijection on 32-bit numbers that looks random: different inputs never collide. */
export function mix(value: number): number {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** An element chosen by a hash. The list must not be empty. */
export function pick<T>(list: readonly T[], hash: number): T {
  const chosen = list[hash % list.length];
  if (chosen === undefined) throw new RangeError("Cannot pick from a list: it is empty");
  return chosen;
}

const HEX = Array.from({ length: 65_536 }, (_, value) => value.toString(16).padStart(4, "0"));

/** The eight hex digits of a 32-bit number. */
export const hex = (value: number): string => `${HEX[value >>> 16]}${HEX[value & 0xffff]}`;

/** A 32-bit number that follows from a text alone. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, "utf8")) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
