import { once } from "node:events";
import { type Served, UsageError } from "./command-line.ts";
import { keyOf, type Sandbox, startSandbox } from "./server.ts";

/** Runs the sandbox until a signal ends it, whose reason it throws. Throws UsageError for a wrong fault. */
export async function serve(
  options: Served,
  stdout: NodeJS.WritableStream,
  signal: AbortSignal,
): Promise<never> {
  const service = await start(options);
  const { people, seed, requestsPerMinute: limit } = options;
  stdout.write(
    `The sandbox listens at ${service.url} until you stop it (Ctrl-C).\n` +
      `Config: {"base_url":"${service.url}","api_key":"${service.key}"}\n` +
      `The key is that of ${people} people of seed ${seed}; other data are another account with another key.\n` +
      `${limit === 0 ? "No request is limited (the service: 60 a minute)" : `More than ${limit} requests a minute get HTTP 429`}.\n`,
  );
  if (!signal.aborted) await once(signal, "abort");
  await service.close();
  throw signal.reason;
}

/** Over how many days the people of a seed were checked: by its counts too, an account of another seed is another one. */
const daysOf = (seed: number): number => 3650 - ((211 * (seed + 1999)) % 2000);

async function start(options: Served): Promise<Sandbox> {
  try {
    const { people, seed } = options;
    return await startSandbox({ ...options, key: keyOf(people, seed), days: daysOf(seed) });
  } catch (error) {
    if (error instanceof RangeError)
      throw new UsageError(`${error.message}. See contact-intelligence-sandbox --help`);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    const why = code === "EACCES" ? "this user may not" : "another program does";
    throw new Error(`Cannot listen on 127.0.0.1:${options.port}: ${why}. Choose another --port`);
  }
}
