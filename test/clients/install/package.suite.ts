import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { expectAirbyteMessages, idsOf, linesOf } from "../../support/airbyte-messages.ts";
import { environmentOf } from "../../support/configs.ts";
import { docBlock } from "../../support/docs.ts";
import { outputOf, ROOT, run } from "../../support/run.ts";
import { filesBelow, tempDir } from "../../support/temp-dir.ts";

const PUBLINT = "publint@0.3.25";
const KILOBYTE = 1000;

type Packed = {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
};

let folder: string;
let packed: Packed;
let bin: Readonly<Record<string, string>>;

beforeAll(async () => {
  folder = await tempDir();
  const [first] = JSON.parse(
    await outputOf("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder]),
  );
  packed = first;
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "elsewhere", private: true }));
  const install = ["install", "--no-audit", "--no-fund", "--offline", join(folder, packed.filename)];
  await outputOf("npm", install, { cwd: folder });
  ({ bin } = JSON.parse(await readFile(`${ROOT}package.json`, "utf8")));
});

const command = (name: string): string => join(folder, "node_modules", ".bin", name);

describe("the npm package", () => {
  it("holds what it needs and nothing else", () => {
    const plain = ["CHANGELOG.md", "LICENSE", "README.md", "package.json", "spec.json"];
    const kept = filesBelow("schemas", "meltano").filter((path) => !path.endsWith(".ts"));
    const built = filesBelow("dist");
    expect(packed.files.map(({ path }) => path).toSorted()).toEqual([...plain, ...kept, ...built].toSorted());
    expect(
      built.filter((path) => !/\.js$|^dist\/(third-party-licenses\.txt|package\.json)$/.test(path)),
    ).toEqual([]);
    expect(packed.size).toBeLessThan(600 * KILOBYTE);
  });

  it("names the license of each package whose code it holds", async () => {
    const licenses = await readFile(`${ROOT}dist/third-party-licenses.txt`, "utf8");
    for (const name of ["undici", "ajv", "yargs", "split2"])
      expect(licenses).toMatch(new RegExp(`^${name}@\\d`, "m"));
  });

  it("is as npm and its users expect (publint)", async () => {
    const { code, stdout, stderr } = await run("npx", ["--yes", PUBLINT, "--strict"]);
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).not.toMatch(/^(Errors|Warnings|Suggestions):/m);
  });

  it("has commands that run where it is installed", async () => {
    for (const name of Object.keys(bin)) {
      expect((await stat(command(name))).mode & 0o111, name).toBe(0o111);
      expect(await outputOf(command(name), ["--help"], { cwd: folder }), name).toContain(name);
    }
    const spec = JSON.parse(
      await outputOf(command("source-contact-intelligence"), ["spec"], { cwd: folder }),
    );
    expect(spec).toMatchObject({ type: "SPEC" });
  });

  it("installs from a clone, as README.md says", async () => {
    const clone = join(folder, "clone");
    await outputOf("git", ["clone", "--quiet", ROOT, clone]);
    const env = { npm_config_prefix: join(folder, "global"), npm_config_prefer_offline: "true" };
    const commands = docBlock("README.md", "sh", "npm pack");
    await outputOf("bash", ["-euo", "pipefail", "-c", commands], { cwd: clone, env });
    for (const name of Object.keys(bin)) {
      expect(await outputOf(join(folder, "global", "bin", name), ["--version"]), name).toMatch(
        /^\d+\.\d+\.\d+\n/,
      );
    }
  });

  it("syncs from where it is installed", async () => {
    await using sandbox = await startSandbox({ people: 100, requestsPerMinute: 0 });
    const env = environmentOf(sandbox);
    const output = await outputOf(command("source-contact-intelligence"), ["read"], { cwd: folder, env });
    expect(idsOf(expectAirbyteMessages(linesOf(output)))).toHaveLength(sandbox.people().length);
  });

  it("needs no other package", async () => {
    const { dependencies } = JSON.parse(await outputOf("npm", ["ls", "--all", "--json"], { cwd: folder }));
    expect(Object.keys(dependencies)).toEqual(["source-contact-intelligence"]);
    expect(dependencies["source-contact-intelligence"].dependencies).toBeUndefined();
  });
});
