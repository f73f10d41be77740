// The measured programs, as command lines. Missing programs are left out.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DAY } from "./rows.js";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
/** The sandbox's own. */
const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";
const JQ = '{type:"RECORD",record:{stream:"people",emitted_at:0,data:.}}';

/** Everything in one window, as exports of other programs are. */
export const ONE_WINDOW = { start_date: DAY, end_date: DAY };
export const DROPPED = { drop_fields: ["people.lastName"] };
export const HASHED = { ...DROPPED, hash_fields: ["people.email"], hash_salt: "a long random text" };

const DIST = at("../dist");
/** A program of a build. */
export const programOf = (dist = DIST, name = "source-contact-intelligence") => join(dist, `${name}.js`);

/** The candidates of this build, each with the same one of another build behind it, if `other` is its dist folder. */
export function ofBuilds(other, candidatesOf) {
  const mine = candidatesOf(DIST);
  if (other === undefined) return mine;
  const theirs = candidatesOf(other);
  return mine.flatMap((one, nth) => [one, { ...theirs[nth], name: `${one.name}, the other build` }]);
}

/** Our own program, with all that a user has on. */
export const ours = (url, config = {}, dist) => [
  ...[process.execPath, programOf(dist), "read", "--stream", "people"],
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

export const prototype = (file, url, name) => ({ name, command: [process.execPath, at(file), url] });

/** Commands of a shell that are on the path. */
export function shellCandidates(url) {
  const curl = `set -o pipefail; curl -sf ${url}/api/v1/public/people/stream`;
  const has = (program) => spawnSync(program, ["--version"]).status === 0;
  return [
    { needs: ["curl", "jq"], name: "`curl` into `jq -c`", into: `jq -c '${JQ}'` },
    { needs: ["curl"], name: "the wire alone: `curl` into `wc`", into: "wc -c" },
  ]
    .filter(({ needs }) => needs.every(has))
    .map(({ name, into }) => ({ name, command: ["bash", "-c", `${curl} | ${into}`] }));
}
