import { describe, expect, it } from "vitest";
import type { SandboxRequest } from "../../../sandbox/http/request-log.ts";
import type { SandboxOptions } from "../../../sandbox/server.ts";
import type { Config } from "../../../src/config/config.ts";
import { retryText } from "../../../src/streams/event.ts";
import { labConfig, type Outcome, readOnce, sharedClock, withSandbox } from "../../lab/faultlab/read-once.ts";

type Odd = {
  readonly faults: readonly string[];
  readonly sandbox?: SandboxOptions;
  readonly config?: Partial<Config>;
};

type Ran = Outcome & {
  readonly served: number;
  /** How many different records came. */
  readonly distinct: number;
  readonly requests: readonly SandboxRequest[];
  /** How many people match the days of a request. */
  readonly rowsIn: (query: SandboxRequest["query"]) => number;
  readonly exports: number;
  readonly said: string;
};

const ACCOUNT: SandboxOptions = {
  ...{ people: 600, undated: 0, days: 60, requestsPerMinute: 0, now: "2026-03-20T10:00:00Z" },
};

/** One sync of an account whose service is odd. */
function read({ faults, sandbox, config }: Odd): Promise<Ran> {
  return withSandbox({ ...ACCOUNT, ...sandbox }, async (service) => {
    service.fault(...faults);
    const said: string[] = [];
    const settings = labConfig(service, { maxWindowRows: 250_000, ...config });
    const outcome = await readOnce({
      clock: sharedClock(service),
      random: () => 0.5,
      ...{ config: settings, state: null },
      notify: (notice) => {
        if (notice.kind === "log") said.push(notice.text);
        if (notice.kind === "retrying") said.push(retryText(notice));
      },
    });
    const contents = outcome.records.map((record) => JSON.stringify(record));
    const { requests } = service;
    const days = service.people().map(({ discoveredAt }) => discoveredAt?.slice(0, 10) ?? "");
    const rowsIn: Ran["rowsIn"] = ({ discovered_from: from = "", discovered_to: to = "9" }) =>
      days.filter((day) => from <= day && day <= to).length;
    return {
      ...outcome,
      ...{ served: days.length, distinct: new Set(contents).size, requests, rowsIn, said: said.join("\n") },
      exports: requests.filter(({ path }) => path.endsWith("/stream")).length,
    };
  });
}

const messageOf = ({ error }: Outcome): string => (error instanceof Error ? error.message : "");

describe("exports that a service cannot make", () => {
  it.each([
    ["504", {}],
    ["500", {}],
    ["silence", { idleTimeoutSeconds: 0.3 }],
  ])("are halved until they can be: %s", async (how, config) => {
    const ran = await read({ faults: [`export-limit=200:how=${how}`], config });
    expect(ran).toMatchObject({ complete: true, distinct: 600 });
    expect(ran.records).toHaveLength(600);
    expect(ran.said).toContain("max_window_rows");
  });

  it.each([
    ["export-limit=2000", 3],
    // Each pass that is short is followed by a count.
    ["end:after=2000:times=always", 4],
  ])("cost 1.5 times the rows at most, and few requests a window: %s, %i", async (fault, requestsAWindow) => {
    const people = 60_000;
    const ran = await read({ faults: [fault], sandbox: { people, days: 360 } });
    expect(ran).toMatchObject({ complete: true, distinct: people });
    const held = ran.requests
      .filter(({ path, status }) => path.endsWith("/stream") && status === 200)
      .map(({ query }) => ran.rowsIn(query));
    const windows = held.filter((rows) => rows <= 2_000).length;
    expect(held.reduce((all, rows) => all + Math.min(rows, 2_000), 0)).toBeLessThan(1.5 * people);
    expect(ran.requests.length).toBeLessThan(requestsAWindow * windows);
  });
});

describe("lists that cannot be asked so deep", () => {
  it.each([
    ["a plan", { maxWindowRows: 60 }, {}],
    ["people without a date", {}, { undated: 3 }],
    ["both", { maxWindowRows: 60 }, { undated: 3 }],
  ])("do not keep %s from being read", async (_, config, sandbox) => {
    const ran = await read({ faults: ["list-depth=100"], config, sandbox });
    expect(ran).toMatchObject({ complete: true, distinct: ran.served });
  });

  it("leave people without a date for later who cannot be reached, and nobody else", async () => {
    const faults = ["list-depth=100", "end:from=none:to=none:times=always"];
    const ran = await read({ faults, sandbox: { undated: 3 }, config: { maxWindowRows: 60 } });
    expect(ran).toMatchObject({ complete: false, distinct: 600 });
    expect(messageOf(ran)).toContain("rows without a date");
    expect(ran.checkpoints.at(-1)?.state["discoveredAt"]).toMatch(/^2026-03-/);
  });
});

describe("a replica that lags", () => {
  it.each([1, 2, 3, 4, 5, 6].flatMap((seconds) => [1, 2].map((moving) => [seconds, moving])))(
    "fails no run while people move (%i seconds behind, %i before each request)",
    async (seconds, moving) => {
      const faults = [`lag=${seconds}`, `move=${moving}:times=always`];
      const ran = await read({ faults, sandbox: { people: 200, days: 20 }, config: { maxWindowRows: 40 } });
      expect([messageOf(ran), ran.complete]).toEqual(["", true]);
    },
  );
});

describe("totals far beyond what there is", () => {
  it("end the stream after few requests", async () => {
    const ran = await read({ faults: ["count=5000000000"], sandbox: { people: 0 } });
    expect(ran.complete).toBe(false);
    expect(ran.requests.length).toBeLessThan(300);
  });

  it.each([
    ["count=3", "Cannot trust the service's totals", 120],
    ["omit=60:lists=too", "days in a row", 400],
  ])("or by as much for every window, end it as well: %s", async (fault, message, most) => {
    const ran = await read({ faults: [fault] });
    expect(ran.complete).toBe(false);
    expect(messageOf(ran)).toContain(message);
    expect(ran.requests.length).toBeLessThan(most);
  });
});

describe("an export that does not end", () => {
  it.each(["endless=blank", "endless=row"])(
    "is ended where all that was counted has been shown: %s",
    async (fault) => {
      const config = { idleTimeoutSeconds: 0.3 };
      const ran = await read({ faults: [`${fault}:after=all:every=20:times=always`], config });
      expect(ran).toMatchObject({ complete: true, distinct: 600 });
      expect([ran.exports, ran.records.length]).toEqual([1, 600]);
    },
  );
});
