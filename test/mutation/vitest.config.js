import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer } from "vitest/node";
import { withHits } from "./rules.js";

/** The tests to run, in this order. */
const files = JSON.parse(process.env.MUTATION_TESTS ?? "[]");
const hits = process.env.MUTATION_HITS;

class InOrder extends BaseSequencer {
  async sort(specifications) {
    const place = ({ moduleId }) => files.findIndex((file) => moduleId.endsWith(`/${file}`));
    return specifications.toSorted((a, b) => place(a) - place(b));
  }
}

const setupFiles = ["test/support/after-file.ts"];

/** Lets each block of the source say that it ran. */
const counting = {
  name: "hits",
  enforce: "pre",
  load(id) {
    const file = relative(process.cwd(), id).replaceAll("\\", "/");
    return file.startsWith("src/") ? withHits(readFileSync(id, "utf8"), file) : undefined;
  },
};

export default defineConfig({
  plugins: hits === undefined ? [] : [counting],
  test: {
    include: files,
    passWithNoTests: true,
    // Only what `npm test` repeats often enough to find is noticed by whoever makes a mistake.
    env: { TZ: "Australia/Lord_Howe" },
    testTimeout: 180_000,
    // One after the other: the first that fails ends the run. Only a count of the blocks has to know which test ran them.
    ...(hits === undefined
      ? { maxWorkers: 1, isolate: false, bail: 1, sequence: { sequencer: InOrder }, setupFiles }
      : { maxWorkers: 3, setupFiles: [...setupFiles, "test/mutation/hits.ts"] }),
  },
});
