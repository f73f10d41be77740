// `node scripts/fill-addresses.js https://host/owner/name TAG` writes the address of the repository into the published files:
// package.json, spec.json, metadata.yaml, Meltano's definitions and the wheel's pyproject.toml. Each release runs this script,
// because the repository does not contain its own address.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const [address, tag] = process.argv.slice(2);
if (!/^https:\/\/[^/\s]+\/[^/\s]+\/[^/\s]+$/.test(address ?? "") || !/^v[\w.-]+$/.test(tag ?? ""))
  throw new Error("Usage: node scripts/fill-addresses.js https://host/owner/name vVERSION");

/** Changes the text of a file. @throws Error if the text stays equal */
function rewrite(name, change) {
  const path = join(root, name);
  const before = readFileSync(path, "utf8");
  const after = change(before);
  if (after === before) throw new Error(`Cannot fill in the address: ${name} has no place for it`);
  writeFileSync(path, after);
}

/** The address until a release. No one can own a name that ends in .invalid (RFC 2606). */
const UNRELEASED = "https://source-contact-intelligence.invalid";

rewrite("package.json", (text) => {
  const { name, version, description, ...rest } = JSON.parse(text);
  const addresses = {
    homepage: `${address}#readme`,
    repository: { type: "git", url: `git+${address}.git` },
    bugs: { url: `${address}/issues` },
  };
  return `${JSON.stringify({ name, version, description, ...addresses, ...rest }, null, 2)}\n`;
});
const definitions = readdirSync(join(root, "meltano"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".yml"))
  .map((name) => join("meltano", name));
const page = (path) => `${address}/blob/${tag}/${path}`;
const links = `  "documentationUrl": "${page("docs/airbyte.md")}",\n  "changelogUrl": "${page("CHANGELOG.md")}",\n`;
rewrite("spec.json", (text) => text.replace("{\n", () => `{\n${links}`));
for (const name of ["metadata.yaml", "packaging/python/pyproject.toml", ...definitions])
  rewrite(name, (text) =>
    text.replaceAll(`${UNRELEASED}/blob/main/`, page("")).replaceAll(UNRELEASED, address),
  );
