import { once } from "node:events";
import { type Served, UsageError } from "./command-line.ts";
import { type Sandbox, startSandbox } from "./server.ts";

/** Runs the stand-in for the service until a signal ends it, whose reason it throws. Throws UsageError for a wrong fault. */
export async function serve(
  options: Served,
  stdout: NodeJS.WritableStream,
  signal: AbortSignal,
): Promise<never> {
  const service = await start(options);
  stdout.write(
    `The sandbox listens at ${service.url} until you stop it (Ctrl-C).\n` +
      `Config: {"base_url":"${service.url}","api_key":"${service.key}"}\n`,
  );
  if (!signal.aborted) await once(signal, "abort");
  await service.close();
  throw signal.reason;
}

async function start(options: Served): Promise<Sandbox> {
  try {
    return await startSandbox(options);
  } catch (error) {
    if (error instanceof RangeError)
      throw new UsageError(`${error.message}. See contact-intelligence-sandbox --help`);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    const why = code === "EACCES" ? "this user may not" : "another program does";
    throw new Error(`Cannot listen on 127.0.0.1:${options.port}: ${why}. Choose another --port`);
  }
}
