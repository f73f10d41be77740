import { createHash } from "node:crypto";
import { dice } from "./dice.ts";

/** A digest of the stories that a line of a golden file sums up. They are printed if the variable TOLD names the line. */
export function digestOf(line: string, stories: readonly string[]): string {
  const all = stories.join("\n");
  if (process.env["TOLD"] === line) process.stderr.write(`${all}\n`);
  return createHash("sha256").update(all).digest("hex").slice(0, 16);
}

/**
 * Lines that sum up stories which seeds draw, for a golden file. `each`: how many stories a line has. `numbersOf`: what a person can
 * read of them; each story begins with "#".
 */
export async function sumsOf(
  name: string,
  [lines, each]: readonly [lines: number, each: number],
  story: (roll: (sides: number) => number) => readonly string[] | Promise<readonly string[]>,
  numbersOf: (said: readonly string[]) => string,
): Promise<string> {
  let sums = "";
  for (let nth = 0; nth < lines; nth++) {
    const roll = dice(nth);
    const said: string[] = [];
    for (let many = 0; many < each; many++) said.push("#", ...(await story(roll)));
    const line = `${name} of ${nth}`;
    sums += `${line}: ${numbersOf(said)}; ${digestOf(line, said)}\n`;
  }
  return sums;
}
