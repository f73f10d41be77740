// Builds the image and prints its name, which is in metadata.yaml. The Dockerfile pins its base by digest. Without that base,
// a local image with its tag replaces it. `--arguments` only prints the arguments of docker for the local image.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const read = (name) => readFileSync(join(root, name), "utf8");

const dockerfile = read("Dockerfile");
const [, tagged, digest] = /^FROM (\S+)(@sha256:[0-9a-f]{64})/m.exec(dockerfile);
const image = /^ {2}dockerRepository: (\S+)\n {2}dockerImageTag: (\S+)$/m;
const name = image.exec(read("metadata.yaml")).slice(1).join(":");

const hasImage = (name) => spawnSync("docker", ["image", "inspect", name], { stdio: "ignore" }).status === 0;

/** Names a copy of the Dockerfile that is built on the local base. */
function withLocalBase() {
  const file = join(root, ".cache", "Dockerfile");
  mkdirSync(join(root, ".cache"), { recursive: true });
  writeFileSync(file, dockerfile.replaceAll(digest, ""));
  return ["-f", file];
}

const base = !hasImage(`${tagged}${digest}`) && hasImage(tagged) ? withLocalBase() : [];

if (process.argv.includes("--arguments")) console.log(base.join(" "));
else {
  const stdio = ["ignore", "ignore", "inherit"];
  execFileSync("docker", ["build", "-q", ...base, "-t", name, "."], { cwd: root, stdio });
  console.log(name);
}
