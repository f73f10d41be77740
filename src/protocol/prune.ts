/** An escape of JSON text; matching all of it tells `\u0000` from `\\u0000`. */
const JSON_ESCAPE = /\\(?:u0000|.)/gs;

export const hasNuls = (line: string): boolean => line.includes("\\u0000");

/**
 * Replaces escaped NULs in JSON text, which SQL targets cannot store, with U+FFFD.
 * Calls `replaced` for each, and leaves all other text alone.
 */
export function withoutNuls(line: string, replaced: () => void): string {
  return line.replace(JSON_ESCAPE, (found) => {
    if (found !== "\\u0000") return found;
    replaced();
    return "\\ufffd";
  });
}
