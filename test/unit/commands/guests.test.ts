import { describe, expect, it } from "vitest";
import { TransientError } from "../../../src/base/errors.ts";
import { incremental } from "../../../src/catalog/airbyte.ts";
import { withGuests } from "../../../src/commands/guests.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { Mask } from "../../../src/protocol/mask.ts";
import { syncStreams } from "../../../src/run/run.ts";
import type { Event } from "../../../src/sync/event.ts";
import { CountingService } from "../../support/counting-service.ts";
import { testProcess } from "../../support/terminal.ts";

const VERIFICATIONS = incremental("email_verifications");

/** Verifies an address without receipts; returns whether the run was complete, and its events. */
async function verify(
  { url }: CountingService,
  states: ReadonlyMap<string, unknown>,
  check = async (): Promise<void> => undefined,
): Promise<readonly [boolean, readonly Event[]]> {
  const settings = { base_url: url, api_key: "k", external_api: { api_url: url, api_key: "k" } };
  const jobs = { receipts_file: "", email_verification: { emails: ["a@x.example"] } };
  const config = parseConfig({ ...settings, ...jobs }, {});
  const events: Event[] = [];
  const reporter = { mask: new Mask(), emit: async (event: Event) => void events.push(event) };
  const complete = await withGuests({ config, runtime: testProcess(), reporter }, async (run, openJobs) => {
    await openJobs([VERIFICATIONS], states, check);
    return await syncStreams(run, [{ configured: VERIFICATIONS }], states);
  });
  return [complete, events];
}

it("a run whose reader is gone waits for no answer of the service, and says why", async () => {
  const emit = () => Promise.reject(new TransientError("Nobody reads"));
  const reporter = { mask: new Mask(), emit };
  let isOver: boolean | undefined;
  const config = parseConfig({ base_url: "http://127.0.0.1:1", api_key: "k" }, {});
  const run = withGuests({ config, runtime: testProcess(), reporter }, async ({ session, emit }) => {
    const error = await emit({ kind: "end" }).catch((thrown: unknown) => thrown);
    isOver = session.signal.aborted;
    throw error;
  });
  await expect(run).rejects.toThrow("Nobody reads");
  expect(isOver).toBe(true);
});

describe("OpenJobs", () => {
  it("submits nothing in a run whose state another run has taken over", async () => {
    await using service = await CountingService.start();
    const [complete, events] = await verify(service, new Map(), async () => {
      throw new TransientError("taken over");
    });
    expect([complete, service.bought, events.at(-1)?.kind]).toEqual([false, [], "close"]);
  });

  it("buys nothing again that the state of another namespace has", async () => {
    await using service = await CountingService.start();
    const [, events] = await verify(service, new Map());
    const state = events.findLast((event) => event.kind === "checkpoint")?.state;
    expect(service.bought).toEqual(["a@x.example"]);
    const [complete] = await verify(service, new Map([["crm/email_verifications", state]]));
    expect([complete, service.bought]).toEqual([true, ["a@x.example"]]);
  });
});
