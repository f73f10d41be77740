// Builds the image under the name that metadata.yaml has, and prints that name. The Dockerfile pins its base by digest; where
// no registry has that, the local image of the same tag takes its place. `--arguments` only prints what docker gets for that.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (name) => readFileSync(join(root, name), "utf8");

const dockerfile = read("Dockerfile");
const [, tagged, digest] = /^FROM (\S+)(@sha256:[0-9a-f]{64})/m.exec(dockerfile);
const [, repository] = /^ {2}dockerRepository: (\S+)$/m.exec(read("metadata.yaml"));
const [, tag] = /^ {2}dockerImageTag: (\S+)$/m.exec(read("metadata.yaml"));

const hasImage = (name) => spawnSync("docker", ["image", "inspect", name], { stdio: "ignore" }).status === 0;

/** Names a copy of the Dockerfile that stands on the local base. */
function withLocalBase() {
  const file = join(root, ".cache", "Dockerfile");
  mkdirSync(join(root, ".cache"), { recursive: true });
  writeFileSync(file, dockerfile.replaceAll(digest, ""));
  return ["-f", file];
}

const isLocal = !hasImage(`${tagged}${digest}`) && hasImage(tagged);
const base = isLocal ? withLocalBase() : [];

if (process.argv.includes("--arguments")) console.log(base.join(" "));
else {
  const name = `${repository}:${tag}`;
  execFileSync("docker", ["build", "-q", ...base, "-t", name, "."], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
  console.log(name);
}
