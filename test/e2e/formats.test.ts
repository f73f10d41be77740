import { readdirSync } from "node:fs";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import { expect, it } from "vitest";
import { openSink } from "../../src/output/sink.ts";
import { Mask } from "../../src/protocol/mask.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { catalogBreaks, specBreaks } from "../support/airbyte-rules.ts";
import { CONNECTOR, connector, run } from "../support/cli.ts";
import { catalogFor, sandboxWith } from "../support/configs.ts";
import { checkpoint, close, open, records } from "../support/events.ts";
import { DAY, JobService } from "../support/job-service.ts";
import { ROOT } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testProcess } from "../support/terminal.ts";

// test/formats has the forms of version 1.0. A later version may never break what a user has of it.

const example = (name: string): string => join(ROOT, "test/formats", name);
const textOf = (name: string): Promise<string> => readFile(example(name), "utf8");

/** An example that a run may write to. */
async function copyOf(name: string): Promise<string> {
  const path = join(await tempDir(), "copy");
  await cp(example(name), path, { recursive: true });
  return path;
}

it("CS18: a config of version 1.0 is still valid: no setting is gone, narrower or newly required", async () => {
  const before = linesOf(await textOf("settings.txt"));
  expect(before).toHaveLength(68);
  const { stdout } = await run(CONNECTOR, ["spec"]);
  const now = JSON.parse(stdout).spec.connectionSpecification;
  expect(specBreaks(before, now)).toEqual([]);
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(now);
  const config = {
    ...{ base_url: "https://contacts.example.com", api_key: "k", start_date: "2026-01-02", is_user: "all" },
    ...{ num_workers: 8, max_window_rows: 1_000, ignore_missing_days: ["2026-01-02"], endpoints: {} },
    external_api: { api_url: "https://external.example.com", api_key: "k" },
    company_lookup: { domains: ["a.example"], from_companies: false, max_wait_seconds: null },
  };
  expect([isValid(config), isValid.errors]).toEqual([true, null]);
});

it("CD9: a connection of version 1.0 still has its streams, fields, types, keys and cursors", async () => {
  const items = { emails: ["a@a.example"] };
  const jobs = { company_lookup: { domains: ["a.example"] }, email_check: items, email_verification: items };
  const { sandbox, config } = await sandboxWith(
    { people: 20 },
    { ...jobs, external_api: { api_url: "https://external.example.com", api_key: "k" } },
  );
  const { stdout } = await run(CONNECTOR, ["discover", "--config", config]);
  const now = JSON.parse(stdout).catalog;
  const before = linesOf(await textOf("catalog.txt"));
  expect(before).toHaveLength(124);
  expect(catalogBreaks(before, now)).toEqual([]);
  expect(sandbox.requests.length).toBeGreaterThan(0);
});

/** The state's days: proven to 2019, again in 2020, unread in 2021, missing on the first day of 2022, then proven. */
const isUnread = (date: string): boolean => /^2020|^2021|^2022-01-01/.test(date) || date >= "2026-03-19";

it.each<[file: string, shown: readonly string[], isDue: (date: string) => boolean]>([
  ["airbyte", ["proven days: the beginning to 2019-12-31, 2022-01-02 to 2026-03-18"], isUnread],
  [
    "singer",
    [
      "missing days: 2022-01-01",
      "days to read again: 2020-01-01 to 2020-12-31",
      "2020-01-01 to 2020-12-31",
      "2021-01-01 to 2021-12-31",
    ],
    isUnread,
  ],
  ["refresh-unfinished", ["full refresh: not complete"], (date) => date >= "2019-12-29"],
  ["refresh-done", ["full refresh: complete"], () => false],
])("every later version reads a state of version 4: %s", async (name, shown, isDue) => {
  const { sandbox, config } = await sandboxWith({ people: 60, sources: 2, now: "2026-03-20T10:00:00Z" });
  const state = example(`state/${name}.json`);
  const { stdout } = await run(CONNECTOR, ["state", "show", state]);
  for (const text of ["state format 4", "rows without a date: 3", ...shown]) expect(stdout).toContain(text);
  const mode = name.startsWith("refresh")
    ? { sync_mode: "full_refresh", destination_sync_mode: "overwrite", generation_id: 3, sync_id: 7 }
    : {};
  const catalog = await catalogFor({ people: mode, sources: { sync_mode: "full_refresh", ...mode } });
  const words = ["read", "--config", config, "--catalog", catalog, "--state", state];
  const { code, messages } = await connector(words);
  const records = messages.flatMap(({ type, record }) => (type === "RECORD" ? [record] : []));
  const of = (stream: string) =>
    records.filter((record) => record?.stream === stream).map((one) => one?.data);
  const due = sandbox.people().filter(({ discoveredAt }) => isDue(discoveredAt ?? ""));
  expect([
    code,
    of("people")
      .map((row) => row?.["id"])
      .sort(),
  ]).toEqual([0, due.map(({ id }) => id).sort()]);
  expect(of("sources")).toHaveLength(name === "refresh-done" ? 0 : 2);
});

const ITEMS = ["answered", "failed", "open", "lost", "refused", "new"].map((name) => `${name}.example`);

it.each<[file: string, collected: readonly string[]]>([
  ["state.json", ["open.example"]],
  ["receipts.jsonl", ["answered.example", "open.example"]],
])("every later version reads the purchases of jobs/%s", async (name, collected) => {
  const isState = name === "state.json";
  const service = new JobService(isState ? "" : await copyOf(`jobs/${name}`));
  const asked = new Set<string>();
  service.known = { job_0: "answered.example", job_2: "open.example" };
  service.result = (item, job_id) => {
    asked.add(item);
    return [200, { job_id, domain: item, status: "success", contacts: [], credits_used: 1 }];
  };
  service.now += DAY / 48;
  const states = isState ? JSON.parse(await textOf(`jobs/${name}`)) : {};
  const { error, rows, said } = await service.sync({ items: ITEMS, states });
  expect([error, service.bought]).toEqual([undefined, ["new.example"]]);
  expect(rows.map(({ domain }) => domain)).toEqual(expect.arrayContaining([...collected]));
  expect([...asked].toSorted()).toEqual([...collected, "new.example"].toSorted());
  expect(said.join("\n")).toContain("6 today");
});

it.each(["finished", "pending"])("every later version continues a folder of format 1: %s", async (name) => {
  const folder = await copyOf(`folders/${name}`);
  const sink = await openSink({ output: folder }, () => "", new Mask(), testProcess());
  expect(sink.saved.streams.get("people")).toMatchObject({ discoveredAt: "2026-03-20T09:00:00.000Z" });
  const before = readdirSync(join(folder, "people"));
  expect(before).toHaveLength(2);
  const state = { discoveredAt: "2026-03-21T09:00:00.000Z" };
  for (const event of [open("people"), records("people", { id: "new" }), checkpoint("people", state)])
    await sink.emit(event);
  await sink.emit(close("people"));
  await sink.release();
  const added = readdirSync(join(folder, "people")).filter((one) => !before.includes(one));
  expect(added).toEqual([expect.stringContaining("-000000003-")]);
});
