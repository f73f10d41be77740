import { defineConfig } from "vitest/config";

const setupFiles = ["test/support/after-file.ts"];
const patient = { setupFiles, testTimeout: 180_000, hookTimeout: 60_000 };
/** Files share a process, which starts and loads the source once. */
const shared = { ...patient, isolate: false };
/** Suites need more than Node and npm (a container engine, Python): each has an npm script of its own. */
const suite = { setupFiles, fileParallelism: false };
/** These measure memory, watch the files that the process has open, change its folder or flags, or replace a module of Node's. */
const alone = [
  "test/api/read-export-memory.test.ts",
  "test/files/{lock,processes,read,replace,whole-output}.test.ts",
  "test/fuzz/fuzz.test.ts",
  "test/jobs/memory.test.ts",
  "test/main.test.ts",
  "test/run/folder-crash.test.ts",
  "test/sandbox/scale.test.ts",
  "test/streams/seen-rows.test.ts",
];
const abroad = [
  "test/{api,catalog,config,jobs,protocol,state,streams}/**/*.test.ts",
  "test/e2e/{read,discover,tap}*.test.ts",
];
/** These repeat something at random or kill processes, with more of it than `npm test` has time for. */
const long = [
  "test/api/{fast-match,read-export}.test.ts",
  "test/catalog/field-rules.test.ts",
  "test/e2e/{acceptance,job-kills,output-killed,process,read-killed,upgrades}.test.ts",
  "test/faultlab/fault-matrix.test.ts",
  "test/jobs/{book,run,state}.test.ts",
  "test/protocol/writer.test.ts",
  "test/reconcile/histories.test.ts",
  "test/run/folder-crash.test.ts",
  "test/sandbox/movement.test.ts",
  "test/shards/model.test.ts",
  "test/scale/odd-days.test.ts",
  "test/streams/simulation.test.ts",
];

export default defineConfig({
  test: {
    // What `npm test` runs, and whatever names no project.
    project: ["abroad", "here", "alone"],
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
      { test: { ...patient, name: "long", include: long, env: { TEST_LONG: "1" }, maxWorkers: 4 } },
      {
        test: {
          ...suite,
          name: "suites",
          include: ["test/{container,jvm,package}/*.suite.ts"],
          testTimeout: 120_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          ...suite,
          name: "meltano",
          include: ["test/meltano/*.suite.ts"],
          globalSetup: ["test/meltano/setup.ts"],
          testTimeout: 180_000,
          hookTimeout: 900_000,
        },
      },
    ],
  },
});
