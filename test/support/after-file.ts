import fc from "fast-check";
import { afterAll } from "vitest";
import { IS_LONG } from "./runs.ts";
import { removeTempDirs } from "./temp-dir.ts";

// Runs for each file of tests, also where several files share a process.
afterAll(removeTempDirs);

// `npm test` draws the same values each time; the lab and the night draw others, and a failure names its seed. Lists are as
// long as a test says: fast-check's own choice is ten at most.
fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true, ...(!IS_LONG && { seed: 20260302 }) });
