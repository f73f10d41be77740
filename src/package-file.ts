import { readFileSync } from "node:fs";

/** The text of a file of this package. The path starts at the package's root. */
export function readPackageText(path: string): string {
  // This file and the bundles made of it both stand one folder below the root.
  return readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
}

/** Parses a JSON file of this package, such as `spec.json`. */
export function readPackageFile(path: string): unknown {
  return JSON.parse(readPackageText(path));
}
