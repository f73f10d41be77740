import { readdirSync, statSync } from "node:fs";
import { ROOT } from "./run.ts";

/** The paths of all files in folders of the repository, from its root. */
export function filesBelow(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" })
      .map((name) => `${folder}/${name}`)
      .filter((path) => statSync(`${ROOT}${path}`).isFile()),
  );
}
