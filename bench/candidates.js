// Who is measured, as command lines. Programs that are not at hand are left out.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
/** The sandbox's own. */
const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";
const JQ = '{type:"RECORD",record:{stream:"people",emitted_at:0,data:.}}';

export const CLI = at("../dist/source-contact-intelligence.js");
/** Everything in one window, as exports of other programs are. */
export const ONE_WINDOW = { max_window_rows: 100_000_000 };

/** Our own program, with all that a user has on. */
export const ours = (url, config = {}, program = CLI) => [
  ...[process.execPath, program, "read", "--stream", "people"],
  ...["--config", configFile({ base_url: url, ...config })],
];

/** The path of a file with this config. The same config has the same file. */
export function configFile(config) {
  const text = JSON.stringify({ api_key: KEY, requests_per_minute: 6000, ...config });
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
  const file = at(`../.cache/bench/config-${digest}.json`);
  mkdirSync(at("../.cache/bench/"), { recursive: true });
  writeFileSync(file, text);
  return file;
}

export const prototype = (name, url) => [process.execPath, at(`peers/${name}.js`), url];

export function shellCandidates(url) {
  const shell = (needs, name, words) =>
    needs.every((program) => spawnSync(program, ["--version"]).status === 0)
      ? [
          {
            name,
            command: [
              "bash",
              "-c",
              `set -o pipefail; curl -sf ${url}/api/v1/public/people/stream | ${words}`,
            ],
          },
        ]
      : [];
  return [
    ...shell(["curl", "jq"], "`curl` into `jq -c`", `jq -c '${JQ}'`),
    ...shell(["curl"], "the wire alone: `curl` into `wc`", "wc -c"),
  ];
}
