import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { filesBelow } from "./support/files-below.ts";
import { ROOT } from "./support/run.ts";

type Group = { readonly modules: readonly string[]; readonly tested: string; readonly why: string };

/** Modules of a folder. */
const within = (folder: string, names: string): string[] =>
  names.split(" ").map((name) => `${folder}/${name}`);

/** Modules of `src/` without a test of their own name, and the tests that fail when they are broken. `x/*`: a whole folder. */
const WITHOUT: readonly Group[] = [
  {
    modules: "commands/* tap-cli source-contact-intelligence tap-contact-intelligence".split(" "),
    tested: "test/e2e/process.test.ts",
    why: "Commands are tested as programs, in test/e2e.",
  },
  {
    modules: within("api", "retry-after usage"),
    tested: "test/api/client.test.ts",
    why: "Both are parts of a request.",
  },
  {
    modules: within("api", "decode rows"),
    tested: "test/api/read-export.test.ts",
    why: "Both are parts of reading an export.",
  },
  {
    modules: within("config", "environment normalize problems"),
    tested: "test/config/config.test.ts",
    why: "Each is a step of parsing a config.",
  },
  {
    modules: "catalog/schema catalog/privacy-schema errors fingerprint json-schema latin1 package-file".split(
      " ",
    ),
    tested: "test/catalog/streams.test.ts",
    why: "A few lines that every test of a stream runs.",
  },
  {
    modules: ["catalog/only-fields"],
    tested: "test/catalog/privacy.test.ts",
    why: "One of the lists that make the rules of a stream, which are tested together.",
  },
  {
    modules: ["files/json-error"],
    tested: "test/files/read.test.ts",
    why: "It says where a file that is read is no JSON.",
  },
  {
    modules: within("jobs", "job-run job-type kinds lattice older seal"),
    tested: "test/jobs/run.test.ts",
    why: "A job's life crosses all of them: runs are played against a service that loses, repeats and charges.",
  },
  {
    modules: [...within("run", "metrics probe-streams"), ...within("run", "runtime stats window-files")],
    tested: "test/e2e/read.test.ts",
    why: "They compose; test/e2e runs them as commands.",
  },
  {
    modules: within("streams", "dated-state stream-api"),
    tested: "test/streams/simulation.test.ts",
    why: "Types of what a read goes by, which is simulated over random services.",
  },
];

const isNamed = (module: string, name: string): boolean =>
  name.endsWith("/*") ? module.startsWith(name.slice(0, -1)) : module === name;

const hasTwin = (module: string): boolean => existsSync(`${ROOT}test/${module}.test.ts`);
const modules = filesBelow("src").map((path) => path.replaceAll("\\", "/").replace(/^src\/(.*)\.ts$/, "$1"));

describe("the tests", () => {
  it("have a twin for each module, or a line in the list above that says why not", () => {
    const named = WITHOUT.flatMap((group) => group.modules);
    const bare = modules.filter((module) => !hasTwin(module) && !named.some((name) => isNamed(module, name)));
    expect(bare).toEqual([]);
  });

  it("are listed with tests that exist, for modules that exist", () => {
    for (const { modules: names, tested } of WITHOUT) {
      expect(existsSync(`${ROOT}${tested}`), tested).toBe(true);
      const stale = names.filter(
        (name) => !modules.some((module) => isNamed(module, name) && !hasTwin(module)),
      );
      expect(stale).toEqual([]);
    }
  });
});
