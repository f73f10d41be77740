import { defineConfig } from "vitest/config";

// Suites that need more than Node and npm (a container engine, Python): each has an npm script of its own.
export default defineConfig({
  test: {
    include: ["test/**/*.suite.ts"],
    globalSetup: ["test/support/setup.ts"],
    setupFiles: ["test/support/after-file.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 600_000,
  },
});
