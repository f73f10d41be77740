import { onTestFinished } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { file } from "./cli.ts";

/** What the environment says of a sandbox. */
export const environmentOf = ({ url, key }: Pick<Sandbox, "url" | "key">): Record<string, string> => ({
  CONTACT_INTELLIGENCE_BASE_URL: url,
  CONTACT_INTELLIGENCE_API_KEY: key,
});

/** A config file for a sandbox. */
export const configFor = ({ url, key }: Sandbox, settings: object = {}): Promise<string> =>
  file("config.json", { base_url: url, api_key: key, requests_per_minute: 6000, ...settings });

/** A sandbox that is there until the test ends, and a config file for it. */
export async function sandboxWith(
  options: SandboxOptions = {},
  settings: object = {},
): Promise<{ readonly sandbox: Sandbox; readonly config: string }> {
  const sandbox = await startSandbox(options);
  onTestFinished(() => sandbox.close());
  return { sandbox, config: await configFor(sandbox, settings) };
}

/** A configured catalog file of streams that are asked for as said, or incrementally. */
export function catalogFor(streams: Readonly<Record<string, object>>): Promise<string> {
  const configured = Object.entries(streams).map(([name, settings]) => ({
    stream: { name, json_schema: { type: "object", properties: {} }, supported_sync_modes: ["full_refresh"] },
    sync_mode: "incremental",
    destination_sync_mode: "append_dedup",
    ...settings,
  }));
  return file("catalog.json", { streams: configured });
}
