// Prints the bill of materials of a release (CycloneDX, JSON): the packages whose code is in the bundle, and no tool of ours.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const licenses = readFileSync(join(root, "dist/third-party-licenses.txt"), "utf8");
const bundled = new Set(licenses.split("\n").filter((line) => /^(@[\w.-]+\/)?[\w.-]+@\d\S*$/.test(line)));

const npm = process.env.npm_execpath?.endsWith(".js")
  ? [process.execPath, process.env.npm_execpath]
  : ["npm"];
const [program, ...words] = [...npm, "sbom", "--sbom-format", "cyclonedx"];
const sbom = JSON.parse(
  execFileSync(program, words, { cwd: root, maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "ignore"] }),
);

const isBundled = ({ name, version }) => bundled.has(`${name}@${version}`);
const components = sbom.components.filter(isBundled).map(({ properties, ...component }) => ({
  ...component,
  properties: properties.filter(({ name }) => name !== "cdx:npm:package:development"),
}));
if (components.length !== bundled.size)
  throw new Error("Cannot list the bundle: a package in it is not installed");
const kept = new Set(components.map((component) => component["bom-ref"]));
const own = sbom.metadata.component;
own.name = "source-contact-intelligence";
const dependencies = sbom.dependencies
  .filter(({ ref }) => kept.has(ref) || ref === own["bom-ref"])
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((name) => kept.has(name)) }));
// Without times, a release has the same bytes each time.
delete sbom.serialNumber;
delete sbom.metadata.timestamp;
console.log(JSON.stringify({ ...sbom, components, dependencies }, null, 2));
