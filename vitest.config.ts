import { defineConfig } from "vitest/config";

export default defineConfig({
  // Most tests wait for a process or a clock, so that more of them fit on a small machine than it has cores.
  test: { include: ["test/**/*.test.ts"], maxWorkers: 4, testTimeout: 180_000, hookTimeout: 60_000 },
});
