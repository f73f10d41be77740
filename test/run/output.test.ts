import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { TransientError } from "../../src/errors.ts";
import { FolderOutput } from "../../src/run/folder-output.ts";
import { Output } from "../../src/run/output.ts";
import { openJobs, syncStreams, withRun } from "../../src/run/run.ts";
import { StateFile } from "../../src/run/state-file.ts";
import { CountingService } from "../support/counting-service.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testProcess } from "../support/terminal.ts";

describe("Output.checkLock()", () => {
  it.each(["a state file", "a folder"])("knows that another run has taken %s over", async (kind) => {
    const folder = await tempDir();
    const runtime = testProcess();
    const output = await Output.open({ name: "x", logs: false }, runtime);
    await output.checkLock();
    if (kind === "a folder") output.folder = await FolderOutput.open(folder, { gzip: false }, runtime);
    else output.stateFile = await StateFile.open(join(folder, "state.json"), runtime);
    await output.checkLock();
    writeFileSync(join(folder, "state.json.lock"), '{"token":"another"}\n');
    await expect(output.checkLock()).rejects.toThrow("another run took it over");
    await output.release();
    await output.close();
  });
});

describe("a run whose state another run has taken over", () => {
  it("submits nothing", async () => {
    await using service = await CountingService.start();
    const runtime = testProcess();
    const config = parseConfig(
      {
        base_url: service.url,
        api_key: "k",
        receipts_file: "",
        external_api: { api_url: service.url, api_key: "k" },
        email_verification: { emails: ["a@x.example"] },
      },
      {},
    );
    const events: string[] = [];
    const reporter = {
      mask: (text: string) => text,
      emit: async ({ kind }: { kind: string }) => void events.push(kind),
    };
    const isComplete = await withRun({ config, runtime, reporter }, async (run) => {
      const check = async (): Promise<void> => {
        throw new TransientError("taken over");
      };
      await openJobs(run, undefined, ["email_verifications"], new Map(), { check, isOne: true });
      const configured = {
        ...{ name: "email_verifications", syncMode: "incremental", destinationSyncMode: null },
        ...{ generationId: null, syncId: null, schema: null },
      };
      return await syncStreams(run, [{ configured }], new Map());
    });
    expect([isComplete, service.bought]).toEqual([false, []]);
    expect(events.at(-1)).toBe("close");
  });
});
