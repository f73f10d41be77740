import { defineConfig } from "vitest/config";

const setupFiles = ["test/support/after-file.ts"];
const patient = { setupFiles, testTimeout: 180_000, hookTimeout: 60_000 };
const alone = "test/**/*.alone.test.ts";
const lab = "test/**/*.lab.test.ts";
/** Files share a process, which starts and loads the source once. */
const shared = { ...patient, isolate: false, exclude: [alone, lab] };
/** Real programs: they need more than Node and npm (a container engine, Python). */
const suite = { setupFiles, fileParallelism: false };

export default defineConfig({
  test: {
    // What `npm test` runs, and whatever names no project.
    project: ["unit", "e2e", "alone"],
    globalSetup: ["test/support/setup.ts"],
    // A test that takes longer is marked; it belongs to the lab.
    slowTestThreshold: 1000,
    // Most tests wait for a process or a clock, so that more of them fit on a small machine than it has cores.
    maxWorkers: 4,
    projects: [
      // Nothing may depend on the zone of the machine. This one differs from UTC by half hours and has summer time.
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          env: { TZ: "Australia/Lord_Howe" },
        },
      },
      { test: { ...shared, name: "e2e", include: ["test/{e2e,lab}/**/*.test.ts"] } },
      // These measure memory, watch the open files of the process, change its folder or flags, or replace a module of Node's.
      { test: { ...patient, name: "alone", include: [alone], exclude: [lab] } },
      // These take minutes, or repeat something at random or kill processes.
      { test: { ...patient, name: "lab", include: [lab], env: { TEST_LONG: "1" } } },
      {
        test: {
          ...suite,
          name: "clients",
          include: ["test/clients/{install,jvm}/*.suite.ts"],
          testTimeout: 120_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          ...suite,
          name: "meltano",
          include: ["test/clients/meltano/*.suite.ts"],
          globalSetup: ["test/clients/meltano/setup.ts"],
          testTimeout: 180_000,
          hookTimeout: 900_000,
        },
      },
    ],
  },
});
