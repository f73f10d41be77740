import { readFileSync } from "node:fs";

/** Parses a JSON file of this package, such as `spec.json`. The path starts at the package's root. */
export function readPackageFile(path: string): unknown {
  // This file and the bundles made of it both stand one folder below the root.
  return JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), "utf8"));
}
