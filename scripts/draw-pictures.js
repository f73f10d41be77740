// Writes the results of runs against the sandbox into the pictures of docs/. pictures.js starts this file.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { startSandbox } from "../sandbox/server.ts";
import { linesOf } from "../test/support/airbyte-messages.ts";
import { hurriedClock, runInProcess } from "../test/support/in-process.ts";
import { writeOrCheck } from "./import-source.js";

const DAY_MS = 86_400_000;

/** The values of a picture, which `draw` takes from runs. The service's clock starts on 20 March 2026. */
async function valuesOf(draw, { start_date, ...options }) {
  const folder = `${mkdtempSync(`${tmpdir()}/pictures-`)}/`;
  const sandbox = await startSandbox({ now: "2026-03-20T12:00Z", ...options });
  const keys = { base_url: sandbox.url, api_key: sandbox.key, requests_per_minute: 6000 };
  writeFileSync(`${folder}config.json`, JSON.stringify({ ...keys, start_date }));
  /** Runs a command line, in which "@" is the folder. */
  const run = (line) => {
    const args = `${line} --config @config.json`.replaceAll("@", folder).split(" ");
    return runInProcess("connector", args, { HOME: folder }, hurriedClock(20));
  };
  const read = () => run("read --stream people --output @contacts --summary @summary.json");
  const lines = (name) => linesOf(readFileSync(folder + name, "utf8"));
  const json = (name) => JSON.parse(lines(name).join(""));
  try {
    return await draw({ sandbox, folder, run, read, lines, json });
  } finally {
    await sandbox.close();
    rmSync(folder, { recursive: true });
  }
}

const dated = (moment, options = { day: "numeric", month: "long", year: "numeric" }) =>
  new Date(moment).toLocaleDateString("en-GB", { timeZone: "UTC", ...options });

const ACCOUNTS = {
  course: { people: 3003, undated: 0, days: 60, faults: ["end:after=1502"] },
  calendar: { people: 2000, days: 700, start_date: "2025-05-01", faults: ["omit=8:lists=too"] },
  life: { people: 40, undated: 0, days: 300, newest: "2026-03-15" },
};

/** An export ends after 1,502 people. The connector reads two parts in its place. */
async function course({ sandbox, read, json }) {
  await read();
  const [first, second] = json("summary.json").streams[0].windows.filter(({ kind }) => kind !== "undated");
  const { shown: older, verdict, discovered_to: to } = first;
  const [newer, cut] = [second.shown, 1502 * sandbox.strikes()[0]];
  const counted = older + newer;
  return { counted, cut, missing: counted - cut, older, newer, verdict, until: dated(to) };
}

/** The service never sends three people. Others move to other days during the second run. */
async function calendar({ sandbox, read, json }) {
  await read();
  sandbox.advance(3 * DAY_MS);
  sandbox.arrive(30);
  sandbox.advance(5 * DAY_MS);
  sandbox.fault(...ACCOUNTS.calendar.faults, "recheck=3:from=2026-03-19:times=always");
  await read();
  const [first, today] = ["2025-03-23", "2026-03-28"].map(Date.parse);
  const counts = { proven: 0, open: 0, again: 0, missing: 0, unread: 0 };
  const { days } = json("contacts/state.json").bookmarks.people;
  const cells = Array.from({ length: (today - first) / DAY_MS + 1 }, (_, nth) => {
    const moment = first + nth * DAY_MS;
    const day = new Date(moment).toISOString().slice(0, 10);
    const span = days.find(({ from, to }) => from <= day && day <= to);
    const status = moment >= today - DAY_MS ? "open" : (span?.status ?? "unread");
    counts[status]++;
    const [x, y] = [Math.floor(nth / 7), nth % 7].map((place) => (15.8 * place).toFixed(1));
    const month = `<text x="${x}" y="-10">${dated(moment, { month: "short" })}</text>`;
    return `\n<use href="#${status}" x="${x}" y="${y}"/>${day.endsWith("-01") ? month : ""}`;
  });
  return { ...counts, today: dated(today), days: cells.join("") };
}

/** The service checks all 40 people again, and removes one of them four days later. */
async function life({ sandbox, folder, read, run, lines }) {
  await read();
  sandbox.advance(DAY_MS);
  sandbox.recheck(40);
  await read();
  sandbox.advance(4 * DAY_MS);
  sandbox.fault("hide=1");
  const table = readdirSync(`${folder}contacts/people`).flatMap((name) => lines(`contacts/people/${name}`));
  writeFileSync(`${folder}table.jsonl`, table.join("\n"));
  await run("reconcile --table @table.jsonl --state @contacts/state.json --output @found");
  const [, gone] = lines("found/gone.csv");
  const rows = table.map((line) => JSON.parse(line)).filter(({ id }) => id === gone);
  const [found, moved] = rows.map(({ discoveredAt }) => discoveredAt).sort();
  return { name: rows[0].firstName, found: dated(found), moved: dated(moved) };
}

/** The lines that the demo prints before it speaks of platforms. */
function demo() {
  const program = `${import.meta.dirname}/../dist/sandbox/contact-intelligence-sandbox.js`;
  const [shown] = execFileSync(process.execPath, [program, "demo"]).toString().split("\n\n5. ");
  let [y, seconds] = [40, 0];
  const lines = shown
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(/.*\n?/g, (line) => {
      const kind = line.startsWith("$ ") ? "command" : line.startsWith("  ") ? "output" : "title";
      [y, seconds] = [y + 16, seconds + (kind === "command" ? 0.9 : 0.1)];
      return `<text class="${kind}" x="18" y="${y}" style="animation-delay:${seconds.toFixed(1)}s">${line.trimEnd()}</text>\n`;
    });
  return { lines, height: y };
}

const isCheck = process.argv.includes("--check");
for (const draw of [course, calendar, life, ...(isCheck ? [] : [demo])]) {
  const path = `docs/${draw.name}.svg`;
  const before = readFileSync(`${import.meta.dirname}/../${path}`, "utf8");
  const { height, ...values } = await (draw === demo ? demo() : valuesOf(draw, ACCOUNTS[draw.name]));
  // Each value goes into the elements whose class is its name.
  const picture = before
    .replace(/(?<=viewBox="0 0 890 )\d+/, height)
    .replaceAll(/(?<=<(tspan|g) class="(\w+)">).*?(?=<\/\1>)/gs, (_, __, name) =>
      values[name].toLocaleString("en"),
    );
  writeOrCheck(path, picture, "node scripts/pictures.js");
}
