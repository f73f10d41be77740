// The ways that rows can take, beside the default one, on this Node and on the image's: `npm run bench -- --only paths`.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configFile, ours } from "./candidates.js";
import { takePairs } from "./measure.js";
import { pathsTable } from "./report.js";
import { prepareRows } from "./rows.js";
import { startServer } from "./server-process.js";

const TAP = new URL("../dist/tap-contact-intelligence.js", import.meta.url).pathname;
const ONE_WINDOW = { max_window_rows: 100_000_000 };
const SALT = { hash_salt: "a long random text" };
const DESELECTED = ["jobTitle", "seniority", "linkedinUrl", "location", "sources"];
/** Of the major version that the image runs, and the options that it sets there. */
const IMAGE_NODE = "node@24";
const IMAGE_OPTIONS = /^ENV NODE_OPTIONS="(.+)"$/m.exec(
  readFileSync(new URL("../Dockerfile", import.meta.url), "utf8"),
)[1];

export async function paths(rows, runs, said) {
  await prepareRows(rows);
  const folder = mkdtempSync(join(tmpdir(), "paths-"));
  const server = await startServer("./server.js", rows);
  const small = await startServer("./sandbox.js", JSON.stringify({ people: 100 }));
  const byNode = new Map();
  try {
    for (const node of [[process.execPath], [imageNode(), ...IMAGE_OPTIONS.split(" ")]]) {
      const candidates = candidatesOf(node, server.url, small.url, folder);
      byNode.set(versionOf(node[0]), await takePairs(candidates, runs, said));
    }
  } finally {
    server.stop();
    small.stop();
    rmSync(folder, { recursive: true });
  }
  return [pathsTable(byNode, rows)];
}

function candidatesOf(node, url, small, folder) {
  const read = (config, ...more) => [...node, ...ours(url, { ...ONE_WINDOW, ...config }).slice(1), ...more];
  const tap = (name, deselected) => {
    const catalog = join(folder, `${name}.json`);
    writeFileSync(catalog, JSON.stringify(catalogOf(deselected)));
    return [...node, TAP, "--config", configFile({ base_url: url, ...ONE_WINDOW }), "--catalog", catalog];
  };
  const output = (...more) => {
    const place = join(folder, "rows");
    return () => {
      rmSync(place, { recursive: true, force: true });
      return read({}, "--output", place, ...more);
    };
  };
  const state = join(folder, "state.json");
  return [
    { name: "default", command: read({}) },
    { name: "drop", command: read({ drop_fields: ["people.lastName"] }) },
    {
      name: "drop and hash",
      command: read({ drop_fields: ["people.lastName"], hash_fields: ["people.email"], ...SALT }),
    },
    {
      name: "only",
      command: read({ only_fields: ["email", "firstName", "jobTitle", "company", "industry"] }),
    },
    { name: "suppress", command: read({ suppress_file: suppressFile(folder) }) },
    { name: "tap", command: tap("all", []) },
    { name: "tap, deselected", command: tap("some", DESELECTED) },
    { name: "output", command: output() },
    { name: "gzip", command: output("--compress", "gzip") },
    { name: "quiet", alone: true, command: [...node, ...ours(small).slice(1), "--state-file", state] },
  ];
}

/** Nobody of the account: every row is compared to the end. */
function suppressFile(folder) {
  const path = join(folder, "suppressed.txt");
  const names = Array.from({ length: 50_000 }, (_, nth) => `gone${nth}@example.org\n${randomUUID()}\n`);
  writeFileSync(path, names.join(""));
  return path;
}

function catalogOf(deselected) {
  const schema = JSON.parse(readFileSync(new URL("../schemas/people.json", import.meta.url), "utf8"));
  const metadata = deselected.map((name) => ({
    breadcrumb: ["properties", name],
    metadata: { selected: false },
  }));
  metadata.push({ breadcrumb: [], metadata: { selected: true } });
  return {
    streams: [{ tap_stream_id: "people", stream: "people", schema, key_properties: ["id"], metadata }],
  };
}

const versionOf = (node) => execFileSync(node, ["--version"], { encoding: "utf8" }).trim();

const imageNode = () =>
  execFileSync("npx", ["-y", IMAGE_NODE, "-p", "process.execPath"], { encoding: "utf8" }).trim();
