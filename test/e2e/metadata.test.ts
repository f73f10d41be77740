import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { STREAMS } from "../../src/catalog/streams.ts";
import { loadSpec } from "../../src/config/spec.ts";
import { docPages } from "../support/docs.ts";
import { IMAGE, imageOf, PINNED_BASE } from "../support/image.ts";
import { ROOT } from "../support/run.ts";

const text = (name: string): string => readFileSync(`${ROOT}${name}`, "utf8");
const metadata = text("metadata.yaml");
const dockerfile = text("Dockerfile");
const { version, name } = JSON.parse(text("package.json")) as { version: string; name: string };

/** The items of a list in metadata.yaml. */
const listOf = (key: string): string[] => {
  const list = new RegExp(`^ +${key}:\\n((?: +- .+\\n)+)`, "m").exec(metadata)?.[1] ?? "";
  return list.split("\n").flatMap((line) => /- (.+)/.exec(line)?.[1] ?? []);
};

describe("metadata.yaml", () => {
  it("has the version of the package, as have the image and every page that names it", () => {
    expect(imageOf(metadata).tag).toBe(version);
    expect(dockerfile).toContain(`io.airbyte.version="${version}"`);
    const manifests = ["first-load/plan", "first-load/shards", "first-load/finish", "daily/daily"];
    for (const page of [...docPages(), ...manifests.map((name) => `deploy/kubernetes/${name}.yaml`)]) {
      const tags = text(page).matchAll(/contact-intelligence\/source-contact-intelligence:([\w.]+)/g);
      expect(
        [...tags].filter(([, tag]) => tag !== version),
        page,
      ).toEqual([]);
    }
  });

  it("names this connector", () => {
    expect(metadata).toMatch(/^ {2}definitionId: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/m);
    expect(metadata).toContain(`githubIssueLabel: ${name}`);
    expect(metadata).toContain(`documentationUrl: ${loadSpec().documentationUrl}`);
    expect(listOf("tags")).toContain("language:typescript");
  });

  it("CA1: allows the hosts that the config names, and no other", () => {
    const hosts = listOf("hosts").map((host) => /^\$\{(.+)\}$/.exec(host)?.[1]);
    expect(hosts).toEqual(["base_url", "external_api.api_url"]);
  });

  it("CA2: suggests streams that there are", () => {
    const names: string[] = STREAMS.map((stream) => stream.name);
    expect(listOf("streams")).toEqual(expect.arrayContaining(["people"]));
    expect(names).toEqual(expect.arrayContaining(listOf("streams")));
  });

  it("has a square icon", () => {
    expect(text("icon.svg")).toMatch(/^<svg [^>]*width="(\d+)" height="\1" viewBox="0 0 \1 \1"/);
  });
});

describe("docs/airbyte.md", () => {
  const page = text("docs/airbyte.md");

  it("CA3: lists what is required under Prerequisites, by its title in the form", () => {
    const prerequisites = /^## Prerequisites\n(.*?)^## /ms.exec(page)?.[1];
    const { required, properties } = loadSpec().connectionSpecification as unknown as {
      required: string[];
      properties: Record<string, { title: string }>;
    };
    for (const property of required) expect(prerequisites).toContain(properties[property]?.title);
  });

  it("CA4: has Airbyte's headings in Airbyte's order", () => {
    const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading);
    const wanted =
      "Contact Intelligence|Prerequisites|Setup guide|Set up Contact Intelligence|For Airbyte Cloud:|" +
      "For Airbyte Open Source:|Supported sync modes|Supported Streams|Performance considerations|" +
      "Data type map|Troubleshooting|Tutorials|Changelog";
    const found = headings.filter((heading = "none") => wanted.split("|").includes(heading));
    expect(found).toEqual(wanted.split("|"));
  });

  it("names every stream with its key", () => {
    for (const { name: stream, primaryKey } of STREAMS) {
      const keys = primaryKey.map((key) => `\`${key}\``).join(", ");
      expect(page).toContain(`| \`${stream}\` | ${keys} |`);
    }
  });

  it("has the release in its change log", () => {
    expect(page).toMatch(
      new RegExp(`^\\| ${version.replaceAll(".", "\\.")} \\| \\d{4}-\\d\\d-\\d\\d \\|`, "m"),
    );
  });
});

describe("Dockerfile", () => {
  it("CS19: has the labels of metadata.yaml", () => {
    expect(IMAGE).toBe(`${imageOf(metadata).repository}:${version}`);
    expect(dockerfile).toContain(`io.airbyte.name="${imageOf(metadata).repository}"`);
  });

  it("CS20: says its entry point to platforms that start it through a shell", () => {
    const entrypoint: string[] = JSON.parse(/^ENTRYPOINT (.+)$/m.exec(dockerfile)?.[1] ?? "[]");
    expect(/^ENV AIRBYTE_ENTRYPOINT="(.+)"$/m.exec(dockerfile)?.[1]).toBe(entrypoint.join(" "));
    expect(entrypoint.at(-1)).toMatch(/^\/airbyte\/integration_code\/dist\//);
    expect(existsSync(`${ROOT}${entrypoint.at(-1)?.replace("/airbyte/integration_code/", "")}`)).toBe(true);
  });

  it("bounds V8's young space by an option that Node takes from the environment", () => {
    const options = /^ENV NODE_OPTIONS="(.+)"$/m.exec(dockerfile)?.[1] ?? "";
    expect(options).toContain("--max-semi-space-size=16");
    const env = { ...process.env, NODE_OPTIONS: options };
    expect(spawnSync(process.execPath, ["-e", "0"], { env, encoding: "utf8" })).toMatchObject({
      status: 0,
      stderr: "",
    });
  });

  it("stands on the base that it builds on, and not as root", () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(bases).toEqual([PINNED_BASE, PINNED_BASE]);
    expect(PINNED_BASE).toMatch(/^node:24-slim@sha256:[0-9a-f]{64}$/);
    expect(dockerfile).toMatch(/^USER \d+:\d+$/m);
  });
});

describe("the workflows", () => {
  it("run scripts that there are", () => {
    const { scripts } = JSON.parse(text("package.json")) as { scripts: Record<string, string> };
    const ci = text(".github/workflows/ci.yml");
    const suites =
      /suite: \[(.+)\]/
        .exec(ci)?.[1]
        ?.split(", ")
        .map((suite) => `test:${suite}`) ?? [];
    const named = [...`${ci}${text(".github/workflows/release.yml")}`.matchAll(/npm run ([\w:-]+)$/gm)];
    const wanted = [...suites, ...named.map(([, script = ""]) => script)];
    expect(wanted.length).toBeGreaterThan(6);
    expect(wanted.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
  });
});
