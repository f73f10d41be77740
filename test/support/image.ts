import { readFileSync } from "node:fs";
import { outputOf, ROOT } from "./run.ts";

/** Where the metadata says that the image is to be found, and its tag. */
export function imageOf(metadata: string): { readonly repository: string; readonly tag: string } {
  const [, repository = "", tag = ""] =
    /^ {2}dockerRepository: (\S+)\n {2}dockerImageTag: (\S+)$/m.exec(metadata) ?? [];
  return { repository, tag };
}

const { repository, tag } = imageOf(readFileSync(`${ROOT}metadata.yaml`, "utf8"));

/** The image under the name that users know it by. */
export const IMAGE = `${repository}:${tag}`;

/** The base that the Dockerfile pins. */
export const PINNED_BASE = /^FROM (\S+)/m.exec(readFileSync(`${ROOT}Dockerfile`, "utf8"))?.[1] ?? "";

/** Builds the image with the `docker` on PATH, unless TEST_IMAGE names one that was built. */
export async function buildImage(): Promise<void> {
  if (process.env["TEST_IMAGE"] === undefined) await outputOf(process.execPath, ["scripts/image.js"]);
}

/** What `docker build` gets on this machine so that its base is there. */
export async function buildArguments(): Promise<string> {
  return (await outputOf(process.execPath, ["scripts/image.js", "--arguments"])).trim();
}
