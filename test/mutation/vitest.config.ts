import { defineConfig } from "vitest/config";

const quick = "test/{api,catalog,config,jobs,protocol,run,shards,state,streams}/**/*.test.ts";

// Tests that can notice a single change. The fault lab, which takes minutes, is left out.
export default defineConfig({
  test: {
    include: [process.env["MUTATED_PROGRAM"] === undefined ? quick : "test/e2e/*.test.ts"],
    exclude: ["test/**/*-memory.test.ts", "test/e2e/read-killed.test.ts"],
    env: { TZ: "Australia/Lord_Howe" },
    testTimeout: 60_000,
  },
});
