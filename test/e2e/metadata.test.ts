import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { STREAMS } from "../../src/catalog/streams.ts";
import { loadSpec } from "../../src/config/spec.ts";
import { docPages } from "../support/docs.ts";
import { IMAGE, imageOf, PINNED_BASE } from "../support/image.ts";
import { ROOT } from "../support/run.ts";

// Airbyte's registry, the image and the pages say the same about this connector. Rules of Airbyte are under their ids.

const text = (name: string): string => readFileSync(`${ROOT}${name}`, "utf8");
const metadata = text("metadata.yaml");
const dockerfile = text("Dockerfile");
const { version, name, scripts } = JSON.parse(text("package.json"));

/** The items of a list in metadata.yaml. */
const listOf = (key: string): string[] => {
  const list = new RegExp(`^ +${key}:\\n((?: +- .+\\n)+)`, "m").exec(metadata)?.[1] ?? "";
  return list.split("\n").flatMap((line) => /- (.+)/.exec(line)?.[1] ?? []);
};

describe("metadata.yaml", () => {
  it("has the version of the package, as have the image and every page that names it", () => {
    expect([imageOf(metadata).tag, IMAGE.endsWith(`:${version}`)]).toEqual([version, true]);
    expect(dockerfile).toContain(`io.airbyte.version="${version}"`);
    const manifests = ["first-load/plan", "first-load/shards", "first-load/finish", "daily/daily"];
    for (const page of [...docPages(), ...manifests.map((one) => `deploy/kubernetes/${one}.yaml`)]) {
      const tags = text(page).matchAll(/contact-intelligence\/source-contact-intelligence:([\w.]+)/g);
      for (const [, tag] of tags) expect(tag, page).toBe(version);
    }
  });

  it("names this connector, its page and its language", () => {
    expect(metadata).toMatch(/^ {2}definitionId: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/m);
    expect(metadata).toContain(`githubIssueLabel: ${name}`);
    expect(metadata).toContain(`documentationUrl: ${loadSpec().documentationUrl}`);
    expect(listOf("tags")).toContain("language:typescript");
    expect(text("icon.svg")).toMatch(/^<svg [^>]*width="(\d+)" height="\1" viewBox="0 0 \1 \1"/);
  });

  it("CA1, CA2: allows the hosts that the config names, and suggests streams that there are", () => {
    const names: string[] = STREAMS.map((stream) => stream.name);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Airbyte's own placeholders
    expect(listOf("hosts")).toEqual(["${base_url}", "${external_api.api_url}"]);
    expect(listOf("streams")).toContain("people");
    expect(listOf("streams").filter((stream) => !names.includes(stream))).toEqual([]);
  });
});

describe("docs/airbyte.md", () => {
  const page = text("docs/airbyte.md");

  it("CA3: lists what is required under Prerequisites, by its title in the form", () => {
    const prerequisites = /^## Prerequisites\n(.*?)^## /ms.exec(page)?.[1];
    const { properties = {}, ...spec } = loadSpec().connectionSpecification;
    for (const property of spec["required"] as string[])
      expect(prerequisites).toContain(properties[property]?.title);
  });

  it("CA4: has Airbyte's headings in Airbyte's order", () => {
    const wanted =
      "Contact Intelligence|Prerequisites|Setup guide|Set up Contact Intelligence|For Airbyte Cloud:|" +
      "For Airbyte Open Source:|Supported sync modes|Supported Streams|Performance considerations|" +
      "Data type map|Troubleshooting|Tutorials|Changelog";
    const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
    expect(headings.filter((heading) => wanted.split("|").includes(heading)).join("|")).toBe(wanted);
  });

  it("names every stream with its key, and the release in its change log", () => {
    for (const { name: stream, primaryKey } of STREAMS)
      expect(page).toContain(`| \`${stream}\` | ${primaryKey.map((key) => `\`${key}\``).join(", ")} |`);
    expect(page).toMatch(
      new RegExp(`^\\| ${version.replaceAll(".", "\\.")} \\| \\d{4}-\\d\\d-\\d\\d \\|`, "m"),
    );
  });
});

describe("Dockerfile", () => {
  it("CS19, CS20: says its name, and its entry point to platforms that start it through a shell", () => {
    expect(dockerfile).toContain(`io.airbyte.name="${imageOf(metadata).repository}"`);
    const entrypoint: string[] = JSON.parse(/^ENTRYPOINT (.+)$/m.exec(dockerfile)?.[1] ?? "[]");
    expect(/^ENV AIRBYTE_ENTRYPOINT="(.+)"$/m.exec(dockerfile)?.[1]).toBe(entrypoint.join(" "));
    const program = entrypoint.at(-1)?.replace("/airbyte/integration_code/", "") ?? "";
    expect([program.startsWith("dist/"), existsSync(`${ROOT}${program}`)]).toEqual([true, true]);
  });

  it("is built on one pinned base, is not run as root, and bounds V8's young space", () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(bases).toEqual([PINNED_BASE, PINNED_BASE]);
    expect(PINNED_BASE).toMatch(/^node:24-slim@sha256:[0-9a-f]{64}$/);
    expect(dockerfile).toMatch(/^USER \d+:\d+$/m);
    expect(dockerfile).toMatch(/^ENV NODE_OPTIONS=".*--max-semi-space-size=16/m);
  });
});

it("the workflows run scripts that there are", () => {
  const workflows = ["ci", "nightly", "release"]
    .map((one) => text(`.github/workflows/${one}.yml`))
    .join("\n");
  const named = [...workflows.matchAll(/npm run ([\w:-]+)/g)].map(([, script = ""]) => script);
  expect(named).not.toEqual([]);
  expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
});
