import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

const bind = (file: string, at: string): boolean =>
  spawnSync("mount", ["--bind", file, at], { stdio: "ignore" }).status === 0;
const unbind = (at: string) => spawnSync("umount", ["-l", at], { stdio: "ignore" });

/** Makes a file known by another path, as a container that mounts it alone does, until the test ends. */
export function mountAlone(file: string, at: string): void {
  writeFileSync(at, "");
  if (!bind(file, at)) throw new Error(`Cannot mount "${file}"`);
  onTestFinished(() => void unbind(at));
}

/** Whether this user may mount files. */
export const canMount = (() => {
  const folder = mkdtempSync(join(tmpdir(), "mounts-"));
  const [one, other] = [join(folder, "one"), join(folder, "other")];
  for (const path of [one, other]) writeFileSync(path, "");
  const can = bind(one, other);
  if (can) unbind(other);
  rmSync(folder, { recursive: true });
  return can;
})();
