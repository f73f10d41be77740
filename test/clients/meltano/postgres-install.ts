import { existsSync } from "node:fs";
import { succeed } from "../../support/run.ts";

/** Where Debian's package puts PostgreSQL, a folder for each version. */
export const INSTALLED = "/usr/lib/postgresql";

/** Installs Debian's package if there is none yet; needs root for that. */
export async function installPostgres(): Promise<void> {
  if (existsSync(INSTALLED)) return;
  if (process.getuid?.() !== 0) {
    throw new Error(
      "The suite needs PostgreSQL: install Debian's package postgresql, or run it as root once",
    );
  }
  await succeed("apt-get", ["install", "-y", "--no-install-recommends", "postgresql"], {
    env: { DEBIAN_FRONTEND: "noninteractive" },
  });
}
