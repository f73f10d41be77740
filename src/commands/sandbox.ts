import { once } from "node:events";
import { startSandbox } from "../sandbox/server.ts";
import type { Process } from "./world.ts";

export type SandboxCommand = {
  readonly port: number;
  readonly people: number;
  readonly seed: number;
  readonly faults: readonly string[];
  /** Of the key: Enterprise lists people, Agency checks e-mails. */
  readonly plan: "enterprise" | "agency";
};

/** Runs the stand-in for the service until a signal ends it. */
export async function sandbox(options: SandboxCommand, { stdout, signal }: Process): Promise<number> {
  const service = await startSandbox(options);
  stdout.write(
    `The sandbox listens at ${service.url} until you stop it (Ctrl-C).\n` +
      `Config: {"base_url":"${service.url}","api_key":"${service.key}"}\n`,
  );
  if (!signal.aborted) await once(signal, "abort");
  await service.close();
  throw signal.reason;
}
