// The ways that rows can take, next to the default one, on this Node and on the image's: `npm run bench -- --only paths`.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configFile, DROPPED, HASHED, ONE_WINDOW, ofBuilds, ours, programOf } from "./candidates.js";
import { resultsTable, takeTurns } from "./measure.js";
import { prepareRows } from "./rows.js";
import { startServer } from "./server-process.js";

const textOf = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
const DESELECTED = ["jobTitle", "seniority", "linkedinUrl", "location", "sources"];
const NAMED = { only_fields: ["email", "firstName", "jobTitle", "company", "industry"] };
/** The major version of Node in the image, and the options of the image. */
const IMAGE_NODE = "node@24";
const IMAGE_OPTIONS = /^ENV NODE_OPTIONS="(.+)"$/m.exec(textOf("../Dockerfile"))[1];

/** A table for each Node. */
export async function paths(rows, runs, other) {
  await prepareRows(rows);
  const folder = mkdtempSync(join(tmpdir(), "paths-"));
  const server = await startServer("./server.js", rows);
  const small = await startServer("./sandbox.js", JSON.stringify({ people: 100 }));
  const tables = [];
  try {
    for (const node of [[process.execPath], [imageNode(), ...IMAGE_OPTIONS.split(" ")]]) {
      const version = execFileSync(node[0], ["--version"], { encoding: "utf8" }).trim();
      const candidates = ofBuilds(other, (dist) => candidatesOf(node, dist, server.url, small.url, folder));
      const results = await takeTurns(candidates, runs);
      tables.push(`Node ${version}:\n\n${resultsTable(results)}`);
    }
  } finally {
    server.stop();
    small.stop();
    rmSync(folder, { recursive: true });
  }
  return tables;
}

function candidatesOf(node, dist, url, small, folder) {
  const read = (name, goal, config, ...more) => ({
    ...{ name, goal },
    command: [...node, ...ours(url, { ...ONE_WINDOW, ...config }, dist).slice(1), ...more],
  });
  const tap = (name, goal, deselected) => {
    const catalog = join(folder, `${deselected.length}.json`);
    writeFileSync(catalog, JSON.stringify(catalogOf(deselected)));
    const config = configFile({ base_url: url, ...ONE_WINDOW });
    const program = programOf(dist, "tap-contact-intelligence");
    return { name, goal, command: [...node, program, "--config", config, "--catalog", catalog] };
  };
  const output = (name, goal, ...more) => {
    const place = join(folder, "rows");
    const { command } = read(name, goal, {}, "--output", place, ...more);
    const emptied = () => {
      rmSync(place, { recursive: true, force: true });
      return command;
    };
    return { name, goal, command: emptied };
  };
  const state = join(mkdtempSync(join(folder, "state-")), "state.json");
  return [
    read("the default: Airbyte messages", "", {}),
    read("one field dropped (`drop_fields`)", 1.1, DROPPED),
    read("one field dropped and one hashed", 1.4, HASHED),
    tap("the Singer tap, all fields selected", 1.12, []),
    tap("the Singer tap, five fields deselected", 1.2, DESELECTED),
    read("five fields named (`only_fields`)", 1.2, NAMED),
    read("100,000 entries in `suppress_file`", 1.15, { suppress_file: suppressFile(folder) }),
    output("files (`--output`)", ""),
    output("files, `--compress gzip`", 1.5, "--compress", "gzip"),
    {
      ...{ name: "a quiet sync of 100 people", goal: "0.27 s, 75 MiB" },
      command: [...node, ...ours(small, {}, dist).slice(1), "--state-file", state],
    },
  ];
}

/** No one of the account: every row is compared to the end. */
function suppressFile(folder) {
  const path = join(folder, "suppressed.txt");
  const names = Array.from({ length: 50_000 }, (_, nth) => `gone${nth}@example.org\n${randomUUID()}\n`);
  writeFileSync(path, names.join(""));
  return path;
}

function catalogOf(deselected) {
  const part = (breadcrumb, selected) => ({ breadcrumb, metadata: { selected } });
  const metadata = [part([], true), ...deselected.map((name) => part(["properties", name], false))];
  const people = { tap_stream_id: "people", stream: "people", key_properties: ["id"], metadata };
  return { streams: [{ ...people, schema: JSON.parse(textOf("../schemas/people.json")) }] };
}

const imageNode = () =>
  execFileSync("npx", ["-y", IMAGE_NODE, "-p", "process.execPath"], { encoding: "utf8" }).trim();
