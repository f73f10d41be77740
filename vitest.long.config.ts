import { defineConfig } from "vitest/config";

// The tests that repeat something at random or kill processes, with more of it than `npm test` has time for.
export default defineConfig({
  test: {
    include: [
      "test/api/{fast-match,read-export}.test.ts",
      "test/catalog/field-rules.test.ts",
      "test/e2e/{acceptance,job-kills,output-killed,read-killed}.test.ts",
      "test/faultlab/fault-matrix.test.ts",
      "test/jobs/{run,state}.test.ts",
      "test/protocol/writer.test.ts",
      "test/run/folder-crash.test.ts",
      "test/sandbox/movement.test.ts",
      "test/shards/model.test.ts",
      "test/streams/simulation.test.ts",
    ],
    env: { TEST_LONG: "1" },
    globalSetup: ["test/support/setup.ts"],
    setupFiles: ["test/support/after-file.ts"],
    maxWorkers: 4,
    testTimeout: 180_000,
    hookTimeout: 60_000,
  },
});
