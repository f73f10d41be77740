import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./support/run.ts";
import { tempDir } from "./support/temp-dir.ts";

const PUBLISHED = [
  "package.json",
  "spec.json",
  "metadata.yaml",
  "meltano/tap-contact-intelligence.yml",
  "meltano/hub/extractors/tap-contact-intelligence/source-contact-intelligence.yml",
  "packaging/python/pyproject.toml",
];

const LINK =
  /\b(?:documentationUrl|changelogUrl|docs|repo|homepage|url|Homepage|Documentation|Changelog|Repository|Issues)"?(?::| =) "?(?:git\+)?(https?:[^\s"]+)/g;

const linksIn = (folder: string): string[] =>
  PUBLISHED.flatMap((name) => [...readFileSync(join(folder, name), "utf8").matchAll(LINK)]).map(
    ([, link = ""]) => link,
  );

it("nothing that is published links a page of anybody else's, before a release or after", async () => {
  const links = linksIn(ROOT);
  expect(links.length).toBe(12);
  expect(links.filter((link) => new URL(link).hostname !== "source-contact-intelligence.invalid")).toEqual(
    [],
  );

  const copy = await tempDir();
  for (const name of [...PUBLISHED, "scripts/fill-addresses.js"]) cpSync(`${ROOT}${name}`, join(copy, name));
  const repository = "https://git.example.com/owner/name";
  execFileSync(process.execPath, [join(copy, "scripts/fill-addresses.js"), repository, "v1.2.3"]);
  const filled = linksIn(copy);
  expect(filled.length).toBe(links.length + 3);
  expect(filled.filter((link) => !link.startsWith(repository))).toEqual([]);
  const pages = filled.flatMap((link) => /\/blob\/v1\.2\.3\/(.+)$/.exec(link)?.[1] ?? []);
  expect(new Set(pages)).toEqual(new Set(["docs/airbyte.md", "CHANGELOG.md", "docs/meltano.md"]));
  expect(pages.filter((page) => !existsSync(`${ROOT}${page}`))).toEqual([]);

  const { homepage, repository: source, bugs } = JSON.parse(readFileSync(join(copy, "package.json"), "utf8"));
  expect([homepage, source.url, bugs.url]).toEqual([
    `${repository}#readme`,
    `git+${repository}.git`,
    `${repository}/issues`,
  ]);
});
