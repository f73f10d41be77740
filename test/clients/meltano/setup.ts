import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { discard, setup as prepare } from "../../support/setup.ts";
import { installPrograms } from "./programs.ts";
import { makeTemplate } from "./project.ts";

/** The settings of the loaders that docs/meltano.md adds. Meltano runs what is on the PATH, and installs nothing. */
const LOADERS: Readonly<Record<string, readonly object[]>> = {
  "target-csv": [{ name: "output_path" }, { name: "file_naming_scheme", value: "{stream_name}.csv" }],
  "target-postgres": [
    { name: "host" },
    { name: "port", kind: "integer", value: 5432 },
    { name: "user" },
    { name: "password", kind: "password", sensitive: true },
    { name: "database" },
    { name: "default_target_schema", value: "$MELTANO_EXTRACT__LOAD_SCHEMA" },
  ],
};

/** Serves the definitions of the loaders, in place of Meltano's Hub on the internet. */
const hub = createServer(({ headers, url = "" }, response) => {
  const asked = basename(url);
  const variant = "meltanolabs";
  const index = Object.keys(LOADERS).map((name) => {
    const ref = `http://${headers.host}/plugins/loaders/${name}`;
    const variants = { [variant]: { name: variant, ref } };
    return [name, { name, logo_url: null, default_variant: variant, variants }];
  });
  const loader = {
    name: asked,
    namespace: asked.replace("-", "_"),
    variant,
    executable: asked,
    settings: LOADERS[asked],
  };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(asked === "index" ? Object.fromEntries(index) : loader));
});

/** Everything that the suite runs is there before its first test, or nothing of it passes. */
export async function setup(): Promise<void> {
  prepare();
  await installPrograms();
  await new Promise<void>((resolve) => hub.listen(0, "127.0.0.1", resolve));
  process.env["MELTANO_HUB_API_ROOT"] = `http://127.0.0.1:${(hub.address() as AddressInfo).port}`;
  // Where Meltano keeps what a Hub said.
  process.env["XDG_CACHE_HOME"] = mkdtempSync(join(tmpdir(), "cache-"));
  process.env["TEST_PROJECT"] = await makeTemplate();
}

/** Meltano and its targets leave temporary files of their own. */
export function teardown(): void {
  hub.closeAllConnections();
  hub.close();
  discard();
}
