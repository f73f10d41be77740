import { afterAll } from "vitest";
import { removeTempDirs } from "./temp-dir.ts";

// Runs for each file of tests, also where several files share a process.
afterAll(removeTempDirs);
