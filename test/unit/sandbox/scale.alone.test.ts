import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";
import { request } from "undici";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { get, list, STREAM, totalOf } from "./http.ts";

const MILLIONS = 10_000_000;
const MB = 1_000_000;

const big = (): Promise<Sandbox> =>
  startSandbox({ people: MILLIONS, now: "2026-03-15T10:00:00.000Z", requestsPerMinute: 0 });

const streamed = (sandbox: Sandbox): ReturnType<typeof request> =>
  request(`${sandbox.url}${STREAM}`, { headers: { "x-api-key": sandbox.key } });

describe("ten million people", () => {
  it("are there at once, to count and to page through", async () => {
    await using sandbox = await big();
    const everyone = await list(sandbox, "?limit=1000");
    const last = await list(sandbox, `?limit=1000&page=${MILLIONS / 1000}`);
    expect(everyone.pagination.total).toBe(MILLIONS + 3);
    expect([everyone.data.length, last.data.length]).toEqual([1000, 1000]);
    expect(await totalOf(sandbox, "&is_user=true&discovered_to=2020-12-31")).toBeGreaterThan(MB);
  });

  it("split into days whose counts add up", async () => {
    await using sandbox = await big();
    const days = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"];
    const counts = await Promise.all(
      days.map((day) => totalOf(sandbox, `&discovered_from=${day}&discovered_to=${day}`)),
    );
    const whole = await totalOf(sandbox, "&discovered_from=2026-03-01&discovered_to=2026-03-04");
    expect(counts.reduce((sum, count) => sum + count)).toBe(whole);
    expect(Math.min(...counts)).toBeGreaterThan(2000);
    const { text } = await get(sandbox, `${STREAM}?discovered_from=2026-03-02&discovered_to=2026-03-02`);
    expect(text.split("\n").length - 1).toBe(counts[1]);
  });

  it("stream in flat memory", async () => {
    await using sandbox = await big();
    const before = process.memoryUsage().rss;
    const answer = await streamed(sandbox);
    const lines = await readLines(answer.body, 200_000);
    expect(lines).toBeGreaterThanOrEqual(200_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * MB);
  });

  it("wait for a client that does not read", async () => {
    await using sandbox = await big();
    const answer = await streamed(sandbox);
    await setTimeout(300);
    const before = process.memoryUsage().rss;
    await setTimeout(700);
    expect(process.memoryUsage().rss - before).toBeLessThan(20 * MB);
    answer.body.on("error", () => {});
    answer.body.destroy();
  });

  it("stop streaming when the client goes away", async () => {
    await using sandbox = await big();
    sandbox.fault("drain=1:every=1000");
    const answer = await streamed(sandbox);
    await readLines(answer.body, 5000);
    // Each thousand rows that are made bring one person to today.
    const made = (): Promise<number> => totalOf(sandbox, "&discovered_from=2026-03-15");
    let [before, after] = [0, await made()];
    while (after !== before) {
      await setTimeout(50);
      [before, after] = [after, await made()];
    }
    expect(after).toBeLessThan(MILLIONS / 1000);
  });
});

describe("close()", () => {
  it("ends what is still running, and may be called twice", async () => {
    const sandbox = await startSandbox({ people: 10, faults: ["stall"] });
    const answer = await streamed(sandbox);
    const failed = answer.body.text().catch(() => "cut");
    await sandbox.close();
    await sandbox.close();
    expect(await failed).toBe("cut");
    const probe = createServer().listen(sandbox.port, "127.0.0.1");
    await new Promise((resolve) => probe.once("listening", resolve));
    probe.close();
  });
});

/** Reads until so many lines have come, then goes away. */
async function readLines(body: AsyncIterable<Buffer>, enough: number): Promise<number> {
  let lines = 0;
  for await (const chunk of body) {
    for (const byte of chunk) if (byte === 10) lines++;
    if (lines >= enough) break;
  }
  return lines;
}
