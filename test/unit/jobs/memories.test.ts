import { appendFile, chmod, link, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { JobService } from "../../support/job-service.ts";
import { tempDir } from "../../support/temp-dir.ts";

const ITEMS = ["a.example", "b.example"];
const STREAM = "company_lookups";

const OTHERS = /not written by this program/;

let folder = "";
let receipts = "";
beforeEach(async () => {
  folder = await tempDir();
  receipts = join(folder, "deep", "receipts.jsonl");
});

/** A service at which both items were bought, with receipts and a state. */
async function bought(path = receipts): Promise<JobService> {
  const service = new JobService(path);
  const { error, rows } = await service.sync({ items: ITEMS });
  expect([error, rows.length]).toEqual([undefined, 2]);
  return service;
}

/** Changes the receipts. */
const edit = async (change: (text: string) => string): Promise<void> =>
  writeFile(receipts, change(await readFile(receipts, "utf8")));

/** Another sync. Returns what is bought then, what it delivers, and why it ended. */
async function next(service: JobService, more: Parameters<JobService["sync"]>[0] = {}) {
  const before = service.bought.length;
  const { rows, error, said } = await service.sync({ items: ITEMS, ...more });
  return {
    bought: service.bought.length - before,
    rows: rows.length,
    why: `${error?.message ?? ""} ${said.join(" ")}`,
  };
}

describe("what was bought is known", () => {
  it("by the receipts where the state is lost, and delivered again", async () => {
    expect(await next(await bought(), { states: {} })).toMatchObject({ bought: 0, rows: 2 });
  });

  it("by the state where the receipts are lost, and by the receipts again once that state was used", async () => {
    const service = await bought();
    await rm(receipts);
    expect(await next(service)).toMatchObject({ bought: 0, rows: 0 });
    expect(await next(service, { states: {} })).toMatchObject({ bought: 0 });
  });

  it("by the state of either stream of a setting, for both streams", async () => {
    const streams = [{ name: "company_lookup_contacts", syncMode: "incremental" }] as const;
    expect(await next(await bought(""), { streams })).toMatchObject({ bought: 0 });
  });

  it("by receipts on a volume that keeps no rights, where all may write to everything", async () => {
    const service = await bought();
    for (const path of [receipts, dirname(receipts)]) await chmod(path, 0o777);
    expect(await next(service, { states: {}, items: [...ITEMS, "c.example"] })).toMatchObject({ bought: 1 });
  });

  it("by receipts larger than the memory, and by a line of any length", async () => {
    const service = await bought();
    const line = (length: number): string => `{"for":"companyLookup","code":"${"b".repeat(length)}"}\n`;
    await appendFile(receipts, line(100).repeat(25_000) + line(3_000_000));
    expect(await next(service, { states: {} })).toMatchObject({ bought: 0, rows: 2 });
  });

  it("by receipts whose last line a crash tore, which is taken off", async () => {
    const service = await bought();
    await appendFile(receipts, '{"for":"companyLookup","items":[{"it');
    expect(await next(service, { states: {} })).toMatchObject({ bought: 0, rows: 2 });
    for (const line of (await readFile(receipts, "utf8")).trimEnd().split("\n")) JSON.parse(line);
  });

  it("by receipts that two machines filled, put together in either order", async () => {
    const one = new JobService(receipts);
    await one.sync({ items: ITEMS.slice(0, 1) });
    const other = new JobService(`${receipts}-2`);
    await other.sync({ items: ITEMS.slice(1) });
    const [a, b] = [await readFile(receipts, "utf8"), await readFile(`${receipts}-2`, "utf8")];
    for (const text of [a + b, b + a, a + a + b]) {
      await writeFile(receipts, text);
      expect((await next(new JobService(receipts))).bought).toBe(0);
    }
  });

  it("by a state that was made from the receipts, once those are lost too", async () => {
    const service = await bought();
    await service.sync({ items: ITEMS, states: {} });
    await rm(receipts);
    expect(await next(service)).toMatchObject({ bought: 0 });
  });
});

describe("nothing is bought", () => {
  it.each<[what: string, damage: () => Promise<unknown>, why: RegExp]>([
    ["a damaged line", () => appendFile(receipts, "damage\n"), OTHERS],
    ["NULs within", () => edit((text) => text.replace(/\n(.{40}).{20}/, `\n$1${"\0".repeat(20)}`)), OTHERS],
    ["two halves in one line", () => edit((text) => text.replace(/(\n.{60}).*\n(.*)\n/, "$1$2\n")), OTHERS],
    ["no header", () => edit((text) => text.slice(text.indexOf("\n") + 1)), /line 1 was not/],
    ["nothing in them", () => writeFile(receipts, ""), /is new, remove it.* mount the folder/],
    ["an empty line", () => appendFile(receipts, "\n"), OTHERS],
    ["a line of another program", () => appendFile(receipts, '{"for":"other"}\n'), OTHERS],
    ["something else in them", () => writeFile(receipts, "something else\n"), /line 1 was not/],
    ["a newer format", () => writeFile(receipts, '{"receipts":4,"salt":{}}\n'), /newer version/],
    ["an older format", () => writeFile(receipts, '{"receipts":2,"salt":"s"}\n'), /the last one .* is 0\.1/],
    ["no salt", () => writeFile(receipts, '{"receipts":3,"salt":5}\n'), /"salt"/],
    [
      "a second part under another salt",
      async () => {
        const path = `${receipts}-2`;
        await new JobService(path).sync({ items: ["c.example"], settings: { hash_salt: "x".repeat(16) } });
        await appendFile(receipts, await readFile(path, "utf8"));
      },
      /another hash_salt.* move ".*receipts\.jsonl" away/,
    ],
    ["rights for all to write", () => chmod(receipts, 0o666), /everyone may write/],
    [
      "such rights in a folder where only owners replace files",
      async () => {
        await chmod(receipts, 0o666);
        await chmod(dirname(receipts), 0o1777);
      },
      /everyone may write/,
    ],
    ["another name", () => link(receipts, `${receipts}2`), /a second name/],
  ])("where the receipts have %s", async (_what, damage, why) => {
    const service = await bought();
    await damage();
    const text = await readFile(receipts, "utf8");
    const ended = await next(service, { items: [...ITEMS, "c.example"] });
    expect([ended.bought, ended.why]).toEqual([0, expect.stringMatching(why)]);
    expect(await readFile(receipts, "utf8")).toBe(text);
  });

  it.each<[what: string, state: (saved: Record<string, unknown>) => unknown, why: RegExp]>([
    ["a newer version", (saved) => ({ ...saved, version: 9 }), /newer version/],
    ["another service", (saved) => ({ ...saved, salt: "elsewhere" }), /another address or another hash_salt/],
    ["an older version", (saved) => ({ ...saved, version: 3 }), /the last one that reads it is 0\.1/],
    ["something else", () => ({ position: 7 }), /state/],
    ["no list of items", (saved) => ({ ...saved, items: 5 }), /state/],
  ])("where the state is of %s", async (_what, change, why) => {
    const service = await bought("");
    const saved = service.saved[STREAM] as Record<string, unknown>;
    const ended = await next(service, { states: { [STREAM]: change(saved) }, items: ["c.example"] });
    expect([ended.bought, ended.why]).toEqual([0, expect.stringMatching(why)]);
  });

  it("where the receipts are of another service, however the address of the same one is written", async () => {
    const service = await bought();
    const at = (url: string) => ({ external_api: { api_url: url, api_key: "k" } });
    const elsewhere = await next(service, { states: {}, settings: at("https://elsewhere.example") });
    expect([elsewhere.bought, elsewhere.why]).toEqual([0, expect.stringContaining("receipts_file")]);
    const written = await next(service, { states: {}, settings: at("https://SERVICE.example/") });
    expect(written).toMatchObject({ bought: 0, rows: 2 });
  });
});

it("nothing is bought where only the receipts of another key know what was bought, and both files are named", async () => {
  const service = new JobService(`${folder}/`);
  const sync = async (api_key: string, states: object) =>
    await next(service, {
      settings: { external_api: { api_url: "https://service.example", api_key } },
      states: states as Readonly<Record<string, unknown>>,
    });
  expect((await sync("svc_0_1", {})).bought).toBe(2);
  const refused = await sync("svc_1_1", {});
  expect([refused.bought, refused.why]).toEqual([
    0,
    expect.stringMatching(
      /the receipts ".*receipts-.*\.jsonl" are from another key.* set it to ".*receipts-.*\.jsonl"/,
    ),
  ]);
  expect(await sync("svc_1_1", {})).toMatchObject({ bought: 0, why: refused.why });
  expect((await sync("svc_0_2", {})).bought, "a new secret of the same key").toBe(0);
});

it.each(["receipts", "state"])("nothing is bought under another hash_salt: %s", async (kept) => {
  const service = await bought(kept === "state" ? "" : receipts);
  const settings = { hash_salt: "a long random text", company_lookup: { domains: ITEMS } };
  const ended = await next(service, { settings, ...(kept === "receipts" && { states: {} }) });
  expect([ended.bought, ended.why]).toEqual([
    0,
    expect.stringMatching(/another hash_salt.* Use the old address/),
  ]);
});

it("the receipts and their folder are only for their owner, and name no item", async () => {
  await bought();
  expect((await stat(receipts)).mode & 0o777).toBe(0o600);
  expect((await stat(dirname(receipts))).mode & 0o777).toBe(0o700);
  expect(await readFile(receipts, "utf8")).not.toMatch(/a\.example|b\.example/);
});
