import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect } from "vitest";

const hits = new Set<string>();
Object.assign(globalThis, { __hits: hits });

afterAll(() => {
  const path = expect.getState().testPath ?? "";
  const name = path.slice(path.lastIndexOf("/test/") + 1).replaceAll("/", "+");
  writeFileSync(join(String(process.env["MUTATION_HITS"]), `${name}.json`), JSON.stringify([...hits]));
});
