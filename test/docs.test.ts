import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../src/sandbox/server.ts";
import { blocksOf, type DocBlock, docBlocks, docPages } from "./support/docs.ts";
import { ROOT, run } from "./support/run.ts";

/** Languages that somebody may copy and run. */
const RUNNABLE = new Set(["sh", "bash", "shell", "console", "zsh", "python", "py", "js", "ts"]);

const pages = docPages();
const blocks = pages.flatMap(docBlocks);
const isOurs = ({ claim }: DocBlock): boolean => claim?.kind === "test" && /^sandbox\b/.test(claim.by);

describe("code in the docs", () => {
  it("is claimed by a test or a script, each block", () => {
    const unclaimed = blocks.filter(({ language, claim }) => RUNNABLE.has(language) && claim === undefined);
    expect(unclaimed.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  });

  it("is claimed by files that exist and name the page", () => {
    const claims = blocks.filter((block) => block.claim !== undefined && !isOurs(block));
    for (const { page, line, claim } of claims) {
      const file = `${ROOT}${claim?.by}`;
      expect(existsSync(file), `${page}:${line}`).toBe(true);
      expect(readFileSync(file, "utf8"), `${page}:${line}`).toContain(basename(page));
    }
  });

  it.each(pages.filter((page) => docBlocks(page).some(isOurs)))("runs: %s", async (page) => {
    await using sandbox = await startSandbox({ requestsPerMinute: 0 });
    const folder = await mkdtemp(join(tmpdir(), "docs-"));
    await prepare(folder, sandbox);
    for (const block of docBlocks(page).filter(isOurs)) await runBlock(block, folder, sandbox);
    await rm(folder, { recursive: true });
  });

  it("is what the error table says: docs/troubleshooting.md", async () => {
    const { code, stderr } = await run(process.execPath, [`${ROOT}scripts/docs.js`, "--check"]);
    expect(code, stderr).toBe(0);
  });

  it("links to pages that exist", () => {
    for (const page of pages) {
      const text = readFileSync(`${ROOT}${page}`, "utf8");
      const folder = page.includes("/") ? "docs/" : "";
      for (const [, target = ""] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
        expect(existsSync(`${ROOT}${folder}${target}`), `${page} links to ${target}`).toBe(true);
      }
    }
  });

  it("finds what nobody claims", () => {
    const page = "Text\n\n```sh\na\n```\n\n<!-- test: sandbox -->\n```sh\nb\n```\n\n```text\nc\n```\n";
    expect(blocksOf("x.md", page)).toMatchObject([
      { line: 3, language: "sh", text: "a\n", claim: undefined },
      { line: 7, language: "sh", text: "b\n", claim: { kind: "test", by: "sandbox" } },
      { line: 12, language: "text", text: "c\n", claim: undefined },
    ]);
  });
});

/** A user's folder: the commands on PATH, and a config for the sandbox. */
async function prepare(folder: string, { url, key }: Sandbox): Promise<void> {
  const { bin } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")) as { bin: Record<string, string> };
  await mkdir(join(folder, ".bin"));
  for (const [name, file] of Object.entries(bin)) await symlink(join(ROOT, file), join(folder, ".bin", name));
  await writeFile(join(folder, "config.json"), JSON.stringify({ base_url: url, api_key: key }));
}

/** Runs a block as it stands, save that the example's address and key are those of the sandbox. */
async function runBlock(
  { page, line, text, claim }: DocBlock,
  folder: string,
  sandbox: Sandbox,
): Promise<void> {
  const script = text
    .replaceAll("https://contacts.example.com", sandbox.url)
    .replaceAll("svc_…", sandbox.key);
  const env = { PATH: `${join(folder, ".bin")}:${process.env["PATH"]}`, HOME: folder };
  const ended = await run("bash", ["-euo", "pipefail", "-c", script], { cwd: folder, env });
  const wanted = Number(/exit=(\d+)/.exec(claim?.by ?? "")?.[1] ?? 0);
  expect(ended.code, `${page}:${line}\n${ended.stdout.slice(-2000)}${ended.stderr}`).toBe(wanted);
}
