import { existsSync, readFileSync } from "node:fs";

/** The root of the package: one folder above the bundles, two above this file. */
const ROOT = ["../", "../../"]
  .map((path) => new URL(path, import.meta.url))
  .find((folder) => existsSync(new URL("spec.json", folder)));

/** Reads a file of this package as text. The path starts at the package's root. */
export const readPackageText = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");

/** Parses a JSON file of this package, such as `spec.json`. */
export const readPackageFile = (path: string): unknown => JSON.parse(readPackageText(path));
