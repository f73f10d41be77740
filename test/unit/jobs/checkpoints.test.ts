import { describe, expect, it } from "vitest";
import {
  advance,
  checkpoint,
  checkpointAfterAnswer,
  lastCheckpoint,
  signOfLife,
} from "../../../src/jobs/checkpoints.ts";
import { JobRun } from "../../../src/jobs/job-run.ts";
import { readJobs } from "../../../src/jobs/run.ts";
import type { Event } from "../../../src/streams/event.ts";
import { JobService, Tape } from "../../support/job-model.ts";

const names = (count: number): string[] => Array.from({ length: count }, (_, nth) => `i${nth}.example`);

/** A run that was just opened, and the service whose clock is the run's. */
function opened(items: readonly string[] = []): { readonly run: JobRun; readonly service: JobService } {
  const service = new JobService(new Tape([]));
  return { run: new JobRun(service.context(items, undefined)), service };
}

/** Takes events as somebody does who needs `ms` for each state. */
function take(events: Iterable<Event>, service: JobService, ms = 0): readonly Event[] {
  const taken: Event[] = [];
  for (const event of events) {
    service.now += ms;
    taken.push(event);
  }
  return taken;
}

describe("checkpoints", () => {
  it("never move the cursor back, whatever order answers come in", () => {
    const { run, service } = opened();
    const moments = ["2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z", null, "2026-03-01T12:00:00Z"];
    const cursors = moments.map((answered) => {
      advance(run, answered);
      const [event] = take(checkpoint(run), service);
      return event?.kind === "checkpoint" ? event.state["created_at"] : undefined;
    });
    expect(cursors).toEqual(["2026-02-01T00:00:00Z", ...Array<string>(3).fill("2026-03-02T00:00:00Z")]);
  });

  it("after answers wait for twenty times what the last one took; purchases do not", () => {
    const { run, service } = opened();
    take(checkpoint(run), service, 50);
    service.now += 999;
    expect(take(checkpointAfterAnswer(run), service)).toEqual([]);
    expect(take(checkpoint(run, true), service, 50)).toMatchObject([{ announces: true }]);
    service.now += 1_000;
    expect(take(checkpointAfterAnswer(run), service)).toHaveLength(1);
  });

  it("are said again after three minutes of silence, and at the end only with news", () => {
    const { run, service } = opened();
    take(checkpoint(run), service);
    service.now += 179_999;
    expect(take(signOfLife(run), service)).toEqual([]);
    service.now += 1;
    expect(take(signOfLife(run), service)).toHaveLength(1);
    expect(take(lastCheckpoint(run), service)).toEqual([]);
    advance(run, null);
    expect(take(lastCheckpoint(run), service)).toHaveLength(1);
  });

  it.each([
    [0, 1],
    [30_000, 20],
  ])("that take %i ms each announce at least %i submissions, once one was answered", async (ms, least) => {
    const service = new JobService(new Tape([]));
    const submitted: number[] = [];
    let states = 0;
    for await (const event of readJobs(service.context(names(61), undefined))) {
      if (event.kind === "checkpoint") {
        service.now += ms;
        submitted.push(service.bought.length);
        states += 1;
      }
    }
    expect(service.bought).toHaveLength(61);
    const steps = submitted
      .map((count, nth) => (submitted[nth + 1] ?? 61) - count)
      .filter((count) => count > 0);
    expect(Math.min(...steps.slice(1))).toBeGreaterThanOrEqual(least);
    if (ms > 0) expect(states).toBeLessThan(12);
  });

  it("follow each answer where they take no time", async () => {
    const service = new JobService(new Tape([]));
    const kinds: string[] = [];
    for await (const { kind } of readJobs(service.context(names(9), undefined)))
      if (kind === "records" || kind === "checkpoint") kinds.push(kind);
    expect(kinds.filter((kind, nth) => kind === "records" && kinds[nth + 1] === "checkpoint")).toHaveLength(
      9,
    );
  });

  it("that take their time wait for no job that is due after this run", async () => {
    const [taken, queued] = [0, 4];
    const service = new JobService(new Tape(names(6).flatMap(() => [taken, queued])));
    for await (const { kind } of readJobs(service.context(names(6), undefined)))
      if (kind === "checkpoint") service.now += 30_000;
    expect(service.bought).toHaveLength(6);
  });
});
