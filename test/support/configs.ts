import type { Sandbox } from "../../sandbox/server.ts";
import { file } from "./cli.ts";

/** A config file for a sandbox. */
export const configFor = (
  { url, key }: Sandbox,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<string> => file("config.json", { base_url: url, api_key: key, ...settings });

type StreamSettings = {
  readonly sync_mode?: string;
  readonly destination_sync_mode?: string;
  readonly generation_id?: number | null;
  readonly sync_id?: number | null;
};

/** A configured catalog file of streams that are asked for as said, or incrementally. */
export function catalogFor(streams: Readonly<Record<string, StreamSettings>>): Promise<string> {
  const configured = Object.entries(streams).map(([name, settings]) => ({
    stream: { name, json_schema: { type: "object", properties: {} }, supported_sync_modes: ["full_refresh"] },
    sync_mode: "incremental",
    destination_sync_mode: "append_dedup",
    ...settings,
  }));
  return file("catalog.json", { streams: configured });
}
