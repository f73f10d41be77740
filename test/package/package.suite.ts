import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startSandbox } from "../../src/sandbox/server.ts";
import { expectAirbyteMessages, linesOf } from "../support/airbyte-messages.ts";
import { docBlock } from "../support/docs.ts";
import { outputOf, ROOT, run } from "../support/run.ts";

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
  folder = await mkdtemp(join(tmpdir(), "package-"));
  const [first] = JSON.parse(
    await outputOf("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder]),
  );
  packed = first;
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "elsewhere", private: true }));
  const install = ["install", "--no-audit", "--no-fund", "--prefer-offline", join(folder, packed.filename)];
  await outputOf("npm", install, { cwd: folder });
  ({ bin } = JSON.parse(await readFile(`${ROOT}package.json`, "utf8")));
});

afterAll(async () => await rm(folder, { recursive: true }));

const command = (name: string): string => join(folder, "node_modules", ".bin", name);

describe("the npm package", () => {
  it("holds what it needs and nothing else", () => {
    const paths = packed.files.map(({ path }) => path);
    const odd = paths.filter((path) => !/^(dist|schemas|meltano)\/[\w./-]+\.(js|json|yml)$/.test(path));
    const plain = ["CHANGELOG.md", "LICENSE", "README.md", "package.json", "spec.json"];
    expect(odd.filter((path) => !plain.includes(path))).toEqual([]);
    expect(paths).toEqual(
      expect.arrayContaining(["LICENSE", "package.json", "schemas/people.json", "spec.json"]),
    );
    expect(packed.size).toBeLessThan(500 * KILOBYTE);
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

  it("installs for everybody on the machine, as docs/standalone.md says", async () => {
    const command = docBlock("docs/standalone.md", "sh", "install");
    const ours = command.replace(/source-contact-intelligence$/m, join(folder, packed.filename));
    const env = { npm_config_prefix: join(folder, "global"), npm_config_prefer_offline: "true" };
    await outputOf("bash", ["-euo", "pipefail", "-c", ours], { cwd: folder, env });
    for (const name of Object.keys(bin)) {
      expect(await outputOf(join(folder, "global", "bin", name), ["--version"]), name).toMatch(
        /^\d+\.\d+\.\d+\n/,
      );
    }
  });

  it("syncs from where it is installed", async () => {
    await using sandbox = await startSandbox({ people: 100, requestsPerMinute: 0 });
    const env = {
      CONTACT_INTELLIGENCE_BASE_URL: sandbox.url,
      CONTACT_INTELLIGENCE_API_KEY: sandbox.key,
    };
    const output = await outputOf(command("source-contact-intelligence"), ["read"], { cwd: folder, env });
    const records = expectAirbyteMessages(linesOf(output)).filter(
      ({ record }) => record?.stream === "people",
    );
    expect(records).toHaveLength(sandbox.people().length);
  });

  it("brings nothing along that it does not say", async () => {
    const { code, stdout } = await run("npm", ["ls", "--omit=dev"], { cwd: folder });
    expect(code, stdout).toBe(0);
  });
});
