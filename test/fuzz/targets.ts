import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { readExport } from "../../src/api/read-export.ts";
import { RowParser } from "../../src/api/rows.ts";
import { noUsage } from "../../src/api/usage.ts";
import { parseConfiguredCatalog } from "../../src/catalog/airbyte.ts";
import { loadSchema } from "../../src/catalog/schema.ts";
import { tapStreamsIn } from "../../src/catalog/singer.ts";
import { select } from "../../src/catalog/singer-selection.ts";
import { STREAMS } from "../../src/catalog/streams.ts";
import { type Config, parseConfig } from "../../src/config/config.ts";
import { ConnectorError } from "../../src/errors.ts";
import { probeExternal, probePublic } from "../../src/jobs/probe.ts";
import { parseJobState } from "../../src/jobs/state.ts";
import { userMessage } from "../../src/protocol/error-text.ts";
import { Session } from "../../src/run/session.ts";
import { parseState } from "../../src/state/envelopes.ts";
import { resumeDated, resumeWhole } from "../../src/state/resume.ts";
import type { Window } from "../../src/streams/window.ts";
import { fastClock } from "../faultlab/read-once.ts";
import { Dice } from "./dice.ts";
import { anyValue, bent, mutated } from "./hostile.ts";

/** Plays one case; returns how many things it threw at the program. */
export type Target = { readonly unit: string; play(dice: Dice): Promise<number>; close(): Promise<void> };

const SECRET = "00112233445566778899aabbccddeeff";
const KEY = `svc_0a1b2c3d_${SECRET}`;
const PEOPLE = loadSchema("people.json");
const none = async (): Promise<void> => undefined;

/** Runs what may fail by an expected error, whose message is fit for a terminal and holds no secret. */
async function expectedly<Result>(work: () => Promise<Result> | Result): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConnectorError)) throw error;
    const message = userMessage(error);
    if (/[^\P{Cc}\n\t]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(message)) {
      throw new Error(`A message holds what no terminal may get: ${JSON.stringify(message)}`, {
        cause: error,
      });
    }
    if (message.includes(SECRET)) throw new Error("A message holds the key", { cause: error });
    if (message.length > 20_000)
      throw new Error(`A message has ${message.length} characters`, { cause: error });
    return undefined;
  }
}

const viaJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? "null");

const CONFIG = {
  base_url: "http://127.0.0.1:9",
  api_key: KEY,
  start_date: "2026-01-02",
  end_date: null,
  source_slug: "acme",
  is_user: "all",
  lookback_window_days: 1,
  num_workers: 2,
  ignore_missing_days: ["2026-01-05"],
  drop_fields: ["people.email"],
  hash_fields: ["email"],
  hash_salt: "a long salt",
  endpoints: { companies: "/api/v1/public/companies" },
  external_api: { api_url: "https://external.example.com", api_key: KEY },
  company_lookup: { domains: ["example.com"], max_credits_per_sync: 5, webhook_url: "https://example.com" },
  email_check: { emails: ["a@example.com"], refresh_after_days: 30 },
};

function config(): Target {
  return {
    unit: "configs",
    close: none,
    async play(dice) {
      const value = viaJson(mutated(CONFIG, dice));
      const environment = {
        [`CONTACT_INTELLIGENCE_${dice.pick(["IS_USER", "ENDPOINTS__X", "START_DATE"])}`]: String(
          dice.pick(["", "x", "{}", "2026-01-02"]),
        ),
      };
      const parsed = await expectedly(() => parseConfig(value, dice.chance(0.2) ? environment : {}));
      if (parsed !== undefined)
        await expectedly(() => new Session(parsed, worldOf(), () => undefined).close());
      return 1;
    },
  };
}

const worldOf = (): ConstructorParameters<typeof Session>[1] => ({
  clock: fastClock(),
  signal: new AbortController().signal,
  environment: {},
  random: () => 0,
});

const AIRBYTE_CATALOG = {
  streams: ["people", "companies", "sources"].map((name) => ({
    stream: {
      name,
      json_schema: PEOPLE,
      supported_sync_modes: ["full_refresh", "incremental"],
      namespace: null,
    },
    sync_mode: "incremental",
    destination_sync_mode: "append_dedup",
    generation_id: 1,
    minimum_generation_id: 0,
    sync_id: 2,
    cursor_field: ["discoveredAt"],
    primary_key: [["id"]],
  })),
};
const SINGER_CATALOG = {
  streams: ["people", "companies"].map((name) => ({
    tap_stream_id: name,
    stream: name,
    schema: PEOPLE,
    key_properties: ["id"],
    metadata: [
      { breadcrumb: [], metadata: { selected: true, "replication-method": "INCREMENTAL" } },
      { breadcrumb: ["properties", "email"], metadata: { selected: false } },
      { breadcrumb: ["properties", "id"], metadata: { inclusion: "automatic" } },
    ],
  })),
};

function catalog(): Target {
  return {
    unit: "catalogs",
    close: none,
    async play(dice) {
      const value = viaJson(mutated(dice.chance(0.5) ? AIRBYTE_CATALOG : SINGER_CATALOG, dice, 0.03));
      const configured = await expectedly(() => parseConfiguredCatalog(value));
      for (const { schema } of configured ?? []) {
        if (schema !== null && dice.chance(0.05))
          await expectedly(() => new RowParser({ key: "id", cursor: null, schema }));
      }
      await expectedly(() => select(value, tapStreamsIn(value)));
      return 1;
    },
  };
}

const DATED = {
  version: 2,
  discoveredAt: "2026-01-02T23:59:59.999Z",
  missing_days: ["2025-12-31"],
  filters: { source_slug: null, is_user: "all" },
  from: null,
  undated: "done",
  undated_checked: "2026-01-02",
  undated_rows: 3,
  recheck: [["2025-12-01", "2025-12-02"]],
  gap: null,
  shard: null,
  full_refresh: null,
};
const JOBS = {
  version: 1,
  jobs: [{ item: "x", step: "submitted", at: "2026-01-02T03:04:05Z", job_id: "job_1" }],
};
const STATES = [
  [{ type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: DATED } }],
  { type: "STREAM", stream: { stream_descriptor: { name: "company_lookups" }, stream_state: JOBS } },
  {
    bookmarks: {
      people: { ...DATED, replication_key: "discoveredAt", replication_key_value: DATED.discoveredAt },
    },
  },
  { type: "STATE", value: { bookmarks: { people: DATED } } },
  { stateType: "stream", streamState: [{ streamDescriptor: { name: "people" }, streamState: DATED }] },
];

function state(): Target {
  return {
    unit: "states",
    close: none,
    async play(dice) {
      const saved = await expectedly(() => parseState(viaJson(mutated(dice.pick(STATES), dice, 0.06))));
      for (const [name, blob] of saved?.streams ?? []) {
        const configured = {
          name,
          syncMode: dice.pick(["incremental", "full_refresh"]),
          destinationSyncMode: null,
          generationId: dice.pick([null, 1]),
          syncId: dice.pick([null, 2]),
          schema: null,
        };
        await expectedly(() => resumeDated(configured, blob, { source_slug: null, is_user: "all" }));
        await expectedly(() => resumeWhole(configured, blob, { source_slug: null, is_user: "all" }));
        await expectedly(() => parseJobState("company_lookups", blob, "created_at"));
      }
      return 1;
    },
  };
}

const ROW = {
  id: "p1",
  email: "a@example.com",
  firstName: "Ann",
  discoveredAt: "2026-01-02T03:04:05.000Z",
  companyDomain: null,
  isUser: true,
};

/** A body of rows, most of them good, cut and packed as a bad network does it. */
function lines(): Target {
  return {
    unit: "lines",
    close: none,
    async play(dice) {
      const count = 1 + dice.below(60);
      const texts = Array.from({ length: count }, (_, nth) => lineOf(dice, nth));
      const plain = Buffer.from(texts.join(dice.pick(["\n", "\n", "\r\n", "\n\n"])), "utf8");
      const body = dice.chance(0.5) ? bent(plain, dice) : plain;
      const gzipped = dice.chance(0.3);
      const sent = gzipped ? (dice.chance(0.1) ? bent(gzipSync(body), dice) : gzipSync(body)) : body;
      const opened = {
        body: Readable.from(piecesOf(sent, dice), { objectMode: false }),
        gzipped,
        idleMs: 60_000,
      };
      const parser = new RowParser({
        key: "id",
        cursor: "discoveredAt",
        schema: dice.chance(0.5) ? PEOPLE : null,
      });
      await expectedly(async () => {
        for await (const { rows } of readExport({ ...opened, usage: noUsage() }, parser, "read people")) {
          for (const { raw } of rows) checkLine(raw);
        }
      });
      return count;
    },
  };
}

function lineOf(dice: Dice, nth: number): string {
  if (dice.chance(0.005))
    return JSON.stringify({ success: false, error: { code: dice.pick(["STREAM_FAILED", "\u001b[2J", 5]) } });
  if (dice.chance(0.02))
    return String(
      dice.pick(["", " ", "null", "[]", "5", "{", "<html>", "\u0000", "\ufeff{}", '{"id":"\\ud800"}']),
    );
  const row = { ...ROW, id: `p${nth}` };
  const text = JSON.stringify(dice.chance(0.3) ? mutated(row, dice, 0.05) : row);
  return dice.chance(0.1) ? bent(Buffer.from(text), dice).toString("latin1") : text;
}

function piecesOf(bytes: Buffer, dice: Dice): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + dice.below(dice.pick([3, 100, 5_000]) + Math.floor(bytes.length / 50));
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

/** A row's line is one line of JSON that any reader takes. */
function checkLine(raw: string): void {
  const text = Buffer.from(raw, "latin1").toString("utf8");
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error("A row is no object");
  if (/[\n\r\u2028\u2029\u0085]/.test(text)) {
    throw new Error("A row's line is more than one line");
  }
}

const ENVELOPE = {
  success: true,
  data: [ROW, { ...ROW, id: "p2" }],
  pagination: { page: 1, limit: 2, total: 2, totalPages: 1 },
};
const ERROR = { success: false, error: { code: "RATE_LIMITED", message: "x" } };
const CODES = [
  "INVALID_API_KEY",
  "JOB_NOT_FOUND",
  "constructor",
  "__proto__",
  "toString",
  "\u001b[2J",
  "x".repeat(500),
];
const ALL: Window = { kind: "all" };

/** A service on a real socket that answers each request with something else. */
async function answers(): Promise<Target> {
  let current = new Dice(0);
  const server = createServer((_, response) => answer(response, current)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const parsed: Config = {
    ...parseConfig({ base_url: url, api_key: KEY, requests_per_minute: 6000 }, {}),
    idleTimeoutSeconds: 2,
    requestsPerMinute: 1e9,
  };
  return {
    unit: "answers",
    async play(dice) {
      current = dice;
      const session = new Session(parsed, worldOf(), () => undefined, 2);
      const api = session.streamApi(dice.pick([STREAMS[0], STREAMS[1]]), {
        cursor: "discoveredAt",
        schema: null,
      });
      const drain = async (): Promise<void> => {
        for await (const { rows } of api.stream(ALL)) for (const { raw } of rows) checkLine(raw);
      };
      const asks = [
        () => api.count(ALL),
        () => api.hasRows(ALL),
        () => api.rowAt(ALL, 3),
        () => api.page(ALL, 1),
        drain,
        () => probePublic(session.client),
        () => probeExternal(session.client),
        () => session.readingOf(STREAMS[1]),
        () => session.client.post("submit", "/api/v1/x", {}),
      ];
      await expectedly<unknown>(dice.pick(asks));
      await session.close();
      return session.client.usage.requests;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(response: ServerResponse, dice: Dice): void {
  const failure = { ...ERROR, error: { code: dice.pick(CODES), message: "x" } };
  const value = dice.chance(0.1)
    ? anyValue(dice)
    : mutated(dice.pick([ENVELOPE, ENVELOPE, ERROR, failure]), dice, 0.06);
  const text = dice.chance(0.1) ? lineOf(dice, 1) : JSON.stringify(value);
  const plain = dice.chance(0.1) ? bent(Buffer.from(text), dice) : Buffer.from(text);
  const encoding = dice.pick(["", "", "", "gzip", "GZIP", "x-gzip", "br", "identity", "gzip, gzip"]);
  const zipped = encoding !== "" && dice.chance(0.8) ? gzipSync(plain) : plain;
  const body = dice.chance(0.05) ? bent(zipped, dice) : zipped;
  response.writeHead(
    dice.pick([200, 200, 200, 200, 201, 204, 301, 400, 401, 403, 404, 408, 418, 423, 429, 500, 503, 599]),
    {
      ...(encoding !== "" && { "content-encoding": encoding }),
      ...(dice.chance(0.2) && {
        date: dice.pick(["x", "Thu, 01 Jan 1970 00:00:00 GMT", "", "9999999999999999"]),
      }),
      ...(dice.chance(0.3) && {
        "retry-after": dice.pick(["-1", "1e9", "x", "", "99999999999999999999", "Infinity"]),
      }),
      ...(dice.chance(0.3) && {
        location: dice.pick(["/x", "http://[", "javascript:alert(1)", "//evil.example.com/x"]),
      }),
    },
  );
  if (dice.chance(0.03))
    response.write(body.subarray(0, dice.below(body.length + 1)), () => response.destroy());
  else response.end(body);
}

/** Everything that can be thrown at. Open targets are closed by their user. */
export const TARGETS: Readonly<Record<string, () => Target | Promise<Target>>> = {
  config,
  catalog,
  state,
  answers,
  lines,
};
