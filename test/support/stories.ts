import { createHash } from "node:crypto";

/** A digest of the stories that a line of a golden file sums up. They are printed if the variable TOLD names the line. */
export function digestOf(line: string, stories: readonly string[]): string {
  const all = stories.join("\n");
  if (process.env["TOLD"] === line) process.stderr.write(`${all}\n`);
  return createHash("sha256").update(all).digest("hex").slice(0, 16);
}
