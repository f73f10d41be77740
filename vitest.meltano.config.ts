import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/meltano/**/*.suite.ts"],
    globalSetup: ["test/meltano/setup.ts"],
    setupFiles: ["test/support/after-file.ts"],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 900_000,
  },
});
