import { defineConfig } from "vitest/config";

const shared = {
  testTimeout: 180_000,
  hookTimeout: 60_000,
  setupFiles: ["test/support/after-file.ts"],
  // Files share a process, which starts and loads the source once.
  isolate: false,
};
/** These measure memory, watch the files that the process has open, change its folder, or replace a module of Node's. */
const alone = [
  "test/api/read-export-memory.test.ts",
  "test/files/lock.test.ts",
  "test/fuzz/fuzz.test.ts",
  "test/jobs/memory.test.ts",
  "test/run/folder-crash.test.ts",
  "test/sandbox/scale.test.ts",
  "test/streams/seen-rows.test.ts",
];
const abroad = [
  "test/{api,catalog,config,jobs,protocol,state,streams}/**/*.test.ts",
  "test/e2e/{read,discover,tap}*.test.ts",
];

export default defineConfig({
  test: {
    globalSetup: ["test/support/setup.ts"],
    // Most tests wait for a process or a clock, so that more of them fit on a small machine than it has cores.
    maxWorkers: 4,
    coverage: { include: ["src/**"], reporter: ["text-summary", ["text", { file: "summary.txt" }]] },
    projects: [
      // Nothing may depend on the zone of the machine. This one differs from UTC by half hours and has summer time.
      {
        test: {
          ...shared,
          name: "abroad",
          include: abroad,
          exclude: alone,
          env: { TZ: "Australia/Lord_Howe" },
        },
      },
      { test: { ...shared, name: "here", include: ["test/**/*.test.ts"], exclude: [...abroad, ...alone] } },
      { test: { ...shared, name: "alone", include: alone, isolate: true } },
    ],
  },
});
