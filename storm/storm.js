// `node storm/storm.js [--who ID] [--only TEXT]`: plays the same trouble against every peer and prints who lost what, who
// was warned, and in how many requests. Needs npm run build. docs/dev/storm.md explains the situations and has the last result.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startSandbox } from "../dist/sandbox/server.js";
import { CACHE, commandOf, install, PEERS } from "./peers.js";

const [PEOPLE, DAYS, DAY_MS] = [5_000, 20, 86_400_000];
/** A run that has not ended by then is stopped. */
const MOST_MS = 600_000;
/** How long a run that is to be killed has to pass on what came before the silence. */
const GRACE_MS = 4_000;
const AT_ONCE = 4;
/** The bytes of a body that a gateway lets through in 12 s, which represent 60 s at a fifth of the speed. */
const GATEWAY_BYTES = 1_600_000;

/** Strikes all answers with people: exports for those who read exports, pages for those who read pages. */
const rows = (fault) => `${fault}:path=/people:of=rows`;
const exports = (fault) => `${fault}:path=/people/stream`;
const all = (fault) => `${fault}:times=always`;

/** Name, fault of the run that is judged, and what else is odd. */
const SITUATIONS = [
  ["calm"],
  ["cut at the end of a line", rows("end")],
  ["cut in a line", rows("midline")],
  ["cut, only the connection says where", rows("close")],
  ["cut without a proper end", rows("fin")],
  ["connection reset", rows("reset")],
  ["shorter than announced", rows("length")],
  ["compressed data cut", rows("gzip-cut")],
  ["the second body cut", rows("end:skip=1")],
  ["every export cut", exports(all("end"))],
  ["every export and page cut", rows(all("end"))],
  ["STREAM_FAILED", exports("stream-failed")],
  ["a proxy's words in the export", exports("garbage")],
  ["bytes that are no UTF-8", rows("bad-utf8")],
  ["429 three times", "429=2:times=3"],
  ["429 with a date", "429=2:date=1:times=3"],
  ["a storm of 429", "429=1:times=20"],
  ["500 three times", "status=500:times=3"],
  ["503 for the whole run", all("status=503")],
  ["423, maintenance", "status=423:times=3"],
  ["the key is revoked in the middle", "status=401:skip=2:times=always"],
  ["silence in the middle", rows("stall")],
  ["no answer at all", "stall-headers"],
  [
    "a gateway that cuts after 60 s",
    rows(all(`gateway=${GATEWAY_BYTES}`)),
    { bytesPerSecond: GATEWAY_BYTES / 12 },
  ],
  ["a redirect to a login page", rows("redirect={elsewhere}/login")],
  ["a login page", rows("html")],
  ["an empty object", rows("wrong-content")],
  ["people who move", rows("drain=1:every=25:order=random")],
  ["days that drain", rows("drain=1:every=10")],
  ["people who arrive", rows(all("arrive=5"))],
  ["pages in random order", "random-order:path=/people$:of=rows", { days: 18 }],
  ["a short page", "short-page:path=/people$"],
  ["rows that exports leave out", exports("omit=3")],
  ["rows that exports repeat", exports("duplicate=20")],
  ["totals that stop at 1,000", "cap=1000:path=/people"],
  ["totals too high by 3", "count=3:path=/people"],
  ["totals too low by 3", "count=-3:path=/people"],
  ["no totals", "null-total:path=/people"],
  ["filters without effect", "filters-ignored:path=/people"],
  ["people without a date", "", { undated: 40 }],
  ["killed, started again", rows("stall"), {}, "killed"],
  ["killed later, started again", rows("stall:skip=1"), {}, "killed"],
  ["another account by mistake", "", {}, "other account"],
];

/** The account that every peer reads. Its dates end where today begins, so that every play of a day has the same days. */
function accountOf(options, daysAgo = 0) {
  const ago = (ms) => new Date(ms - daysAgo * DAY_MS).toISOString();
  const newest = ago(Math.floor(Date.now() / DAY_MS) * DAY_MS);
  const now = daysAgo > 0 && { now: ago(Date.now()) };
  return { people: PEOPLE, undated: 0, days: DAYS, newest, ...now, ...options };
}

const versionOf = ({ id, discoveredAt }) => `${id} ${discoveredAt}`;

/** Plays a situation: the run with its fault, and an ordinary run after it with the state that it left. */
async function play(peer, [name, fault = "", options = {}, plot], noise) {
  const folder = join(CACHE, "runs", peer.id, name.replace(/\W+/g, "-"));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const sandbox = await startSandbox(accountOf(options, plot === "other account" ? 5 : 0));
  const other = await startSandbox(accountOf({ people: 300, seed: 2 }));
  const held = new Set();
  const lacks = (people) => people.filter((person) => !held.has(versionOf(person))).length;
  const run = async (service, until) => {
    const ended = await runPeer(peer, folder, service.url, sandbox.key, until);
    for (const row of ended.rows) held.add(versionOf(row));
    return ended;
  };
  const struck = () => sandbox.strikes().some((strikes) => strikes > 0);
  try {
    if (plot === "other account") {
      await run(sandbox);
      sandbox.advance(2 * DAY_MS);
      sandbox.arrive(50);
      sandbox.advance(3 * DAY_MS);
    }
    if (fault !== "") sandbox.fault(fault.replace("{elsewhere}", elsewhere));
    const isDead = plot === "killed" && (await run(sandbox, struck)).exit === "stopped";
    if (isDead) sandbox.fault();
    const before = new Set(sandbox.people().map(versionOf));
    const service = plot === "other account" ? other : sandbox;
    const asked = service.requests.length;
    const first = await run(service);
    const requests = service.requests.length - asked;
    const met = fault === "" || isDead || struck();
    sandbox.fault();
    const lost = lacks(sandbox.people().filter((person) => before.has(versionOf(person))));
    await run(sandbox);
    const forGood = lacks(sandbox.people());
    const twice = first.rows.length - new Set(first.rows.map(versionOf)).size;
    const warned = first.exit !== 0 || first.complaints.some((complaint) => !noise.has(gist(complaint)));
    return { ...first, twice, warned, requests, word: wordOf({ ...first, lost, forGood, warned, met }) };
  } finally {
    await Promise.all([sandbox, other].map((server) => server.close()));
  }
}

function wordOf({ lost, forGood, warned, exit, met }) {
  if (forGood > 0) return warned ? `warned, lost (${forGood})` : `**LOST** (${forGood})`;
  if (lost > 0) return warned ? `warned, then complete (${lost})` : `late (${lost})`;
  return (exit === 0 ? "complete" : "complete, a false alarm") + (met ? "" : ", not met");
}

/** A complaint without numbers and times that differ from run to run. */
const gist = (complaint) => complaint.replace(/[0-9a-f]{8,}|\d+/gi, "#");

const CATALOG = {
  streams: [
    {
      stream: {
        ...{ name: "people", json_schema: { type: "object", properties: {} }, source_defined_cursor: true },
        ...{ supported_sync_modes: ["full_refresh", "incremental"], default_cursor_field: ["discoveredAt"] },
      },
      ...{ sync_mode: "incremental", destination_sync_mode: "append_dedup" },
      ...{ cursor_field: ["discoveredAt"], primary_key: [["id"]] },
    },
  ],
};

/** Runs a peer once, until it ends or, with `until`, shortly after that is true. */
async function runPeer(peer, folder, base_url, api_key, until = () => false) {
  const start_date = new Date(Date.now() - (DAYS + 5) * DAY_MS).toISOString().slice(0, 10);
  const config = Object.entries({ base_url, api_key, start_date }).filter(
    ([name]) => peer.settings?.includes(name) ?? true,
  );
  writeFileSync(join(folder, "config.json"), JSON.stringify(Object.fromEntries(config)));
  writeFileSync(join(folder, "catalog.json"), JSON.stringify(CATALOG));
  const before = filesOf(peer, folder);
  const [program, ...args] = commandOf(peer, existsSync(join(folder, "state.json")));
  const hidden = /^(npm_|contact_intel|.*_proxy$|node_opt)/i;
  const kept = Object.entries(process.env).filter(([name]) => !hidden.test(name));
  const python = { PYTHONDONTWRITEBYTECODE: "1", PYTHONUNBUFFERED: "1" };
  const env = { ...Object.fromEntries(kept), ...python, TZ: "UTC" };
  const began = performance.now();
  const child = spawn(program, args, { cwd: folder, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = [[], []];
  child.stdout.on("data", (chunk) => stdout.push(chunk));
  child.stderr.on("data", (chunk) => stderr.push(chunk));
  let [isOver, since] = [false, Number.POSITIVE_INFINITY];
  const ended = once(child, "close").finally(() => (isOver = true));
  while (!isOver && performance.now() - began < MOST_MS && performance.now() - since < GRACE_MS) {
    if (until()) since = Math.min(since, performance.now());
    await Promise.race([ended, delay(50)]);
  }
  if (!isOver) process.kill(-child.pid, "SIGKILL");
  const [code] = await ended;
  const messages = peer.speaks === "files" ? [] : objectsIn(Buffer.concat(stdout).toString("utf8"));
  const state = messages.findLast(({ type }) => type === "STATE");
  if (state !== undefined) writeFileSync(join(folder, "state.json"), JSON.stringify(stateOf(state)));
  const written = [...filesOf(peer, folder)].filter(([path, version]) => before.get(path) !== version);
  const objects = [
    ...written.flatMap(([path]) => objectsIn(readFileSync(path, "utf8"))),
    ...messages.flatMap(({ type, record }) => (type === "RECORD" ? [record.data ?? record] : [])),
  ];
  const said = Buffer.concat(stderr).toString("utf8").split("\n");
  return {
    exit: code ?? "stopped",
    seconds: Math.round((performance.now() - began) / 1000),
    rows: objects.filter(({ id }) => typeof id === "string").map((row) => toRow(row, peer.cursor)),
    complaints: [
      ...messages.flatMap(complaintOf),
      ...said.filter((line) => peer.complaint?.test(line) ?? false),
    ],
  };
}

/** Half a line at the end, of a run that was killed, says nothing. */
function objectsIn(text) {
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line)].filter((value) => typeof value === "object" && value !== null);
    } catch {
      return [];
    }
  });
}

function toRow({ id, ...row }, cursor = "discoveredAt") {
  return { id, discoveredAt: typeof row[cursor] === "string" ? new Date(row[cursor]).toISOString() : null };
}

/** Airbyte's messages say their level. */
function complaintOf({ type, log, trace }) {
  if (type === "LOG" && /^(WARN|ERROR|FATAL)/.test(log?.level)) return [log.message];
  return type === "TRACE" && trace?.type === "ERROR" ? [trace.error?.message ?? "an error"] : [];
}

/** Airbyte's platform keeps the newest state of the one stream; a target of Singer the newest value. */
const stateOf = ({ state, value }) => value ?? (state?.type === "STREAM" ? [state] : state?.data);

/** The files of a peer that writes files, and what tells two versions of them apart. */
function filesOf({ rows = "" }, folder) {
  const home = join(folder, rows);
  if (rows === "" || !existsSync(home)) return new Map();
  const paths = readdirSync(home, { recursive: true }).filter((name) => name.endsWith(".jsonl"));
  return new Map(paths.sort().map((name) => [join(home, name), statSync(join(home, name)).mtimeMs]));
}

/** Another server, which answers everything with a login page, and counts the keys that it is sent. */
let keys = 0;
const login = createServer(({ headers }, response) => {
  if (headers["x-api-key"] !== undefined || headers.authorization !== undefined) keys++;
  response.setHeader("content-type", "text/html").end("<!doctype html><title>Sign in</title>\n");
});
await once(login.listen(0, "127.0.0.1"), "listening");
const elsewhere = `http://127.0.0.1:${login.address().port}`;

const { who, only } = parseArgs({ options: { who: { type: "string" }, only: { type: "string" } } }).values;
const peers = PEERS.filter(({ id }) => who === undefined || id === who).filter((peer) => {
  const why = install(peer);
  if (why !== undefined) console.error(`${peer.name}: left out, because ${why}`);
  return why === undefined;
});
const [calm, ...others] = SITUATIONS;
const chosen = others.filter(([name]) => only === undefined || name.includes(only));
const outcomes = new Map();
const noise = new Map();
const playOne = async ([peer, situation]) => {
  const outcome = await play(peer, situation, noise.get(peer.id) ?? new Set());
  if (situation === calm) noise.set(peer.id, new Set(outcome.complaints.map(gist)));
  outcomes.set(`${peer.id} ${situation[0]}`, outcome);
  const { word, twice, exit, warned, requests, seconds } = outcome;
  const more = `exit ${exit}, ${warned ? "warned" : "not warned"}, ${twice} twice, ${requests} requests, ${seconds} s`;
  console.error(`${peer.id}, ${situation[0]}: ${word}; ${more}, ${keys} keys sent elsewhere so far`);
};
/** A message of a peer when nothing is wrong is no alarm later, so this situation comes first. */
for (const situations of [[calm], chosen]) {
  const todo = situations.flatMap((situation) => peers.map((peer) => [peer, situation]));
  const lane = async () => {
    for (let next = todo.shift(); next !== undefined; next = todo.shift()) await playOne(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}
console.log(`|  | ${peers.map(({ name }) => name).join(" | ")} |\n| --- |${" --- |".repeat(peers.length)}`);
for (const [name] of [calm, ...chosen])
  console.log(`| ${name} | ${peers.map(({ id }) => outcomes.get(`${id} ${name}`).word).join(" | ")} |`);
login.close();
