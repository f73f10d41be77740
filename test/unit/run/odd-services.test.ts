import { expect, it } from "vitest";
import type { SandboxOptions } from "../../../sandbox/server.ts";
import type { Day } from "../../../src/base/time.ts";
import type { Config } from "../../../src/config/config.ts";
import { labConfig, type Outcome, readOnce, sharedClock, withSandbox } from "../../lab/faultlab/read-once.ts";

/** Reads people, or companies, of a small service that has faults. */
function read(
  faults: readonly string[],
  sandbox: SandboxOptions = {},
  config: Partial<Config> = {},
  stream: "people" | "companies" = "people",
): Promise<Outcome & { served: number; requests: number; message: string }> {
  const account = { people: 60, undated: 0, days: 6, companies: 20, requestsPerMinute: 0 };
  return withSandbox({ ...account, now: "2026-03-20T10:00:00Z", ...sandbox }, async (service) => {
    service.fault(...faults);
    const settings = labConfig(service, { maxWindowRows: 250_000, ...config });
    const clock = sharedClock(service);
    const ran = await readOnce({ clock, random: () => 0.5, config: settings, stream, state: null });
    const { length: served } = stream === "people" ? service.people() : service.companies();
    const message = ran.error instanceof Error ? ran.error.message : "";
    return { ...ran, served, requests: service.requests.length, message };
  });
}

it.each<[string, string[], SandboxOptions, Partial<Config>]>([
  ["that makes no export of more than 20 rows", ["export-limit=20:how=504"], {}, {}],
  ["that makes no export at all", ["export-limit=0"], {}, {}],
  ["whose lists cannot be asked so deep", ["list-depth=10"], { undated: 3 }, { maxWindowRows: 20 }],
  ["whose replica lags while people move", ["lag=3", "move=1:times=always"], {}, { maxWindowRows: 20 }],
])("a service %s loses nobody, and the stream is complete", async (_, faults, sandbox, config) => {
  const { complete, records, message, served } = await read(faults, sandbox, config);
  expect([message, complete]).toEqual(["", true]);
  expect(new Set(records.map(({ id }) => id)).size).toBe(served);
});

it("people who were erased and are still counted leave their days missing, and the message names the way out", async () => {
  const { complete, message } = await read(["omit=10:lists=too"], {}, { endDate: "2026-03-17" as Day });
  expect(complete).toBe(false);
  expect(message).toContain("ignore_missing_days");
});

it("two companies of one domain are distinguished by their content, and hide no row that is lost", async () => {
  const { complete, records, served } = await read(["twins=2"], {}, {}, "companies");
  expect([complete, records.length]).toEqual([true, served]);
  expect((await read(["twins=2", "omit=1:lists=too"], {}, {}, "companies")).complete).toBe(false);
});

it("counts that fail end the stream after few requests", async () => {
  const { complete, requests } = await read(["status=503:skip=2:times=always"]);
  expect(complete).toBe(false);
  expect(requests).toBeLessThan(20);
});

it("totals that are null prove nothing: the stream ends, and the message names the setting that reads without proof", async () => {
  const { complete, message } = await read(["null-total", "end:after=9:times=always"]);
  expect([complete, message]).toEqual([false, expect.stringContaining("verify_counts")]);
});
