import { type JsonSchema, propertiesOf } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import type { FieldSchema, Lines, StreamState } from "../streams/event.ts";
import { asciiJson, jsonLine, splice } from "./language.ts";

/** What one selected stream says in Singer's messages, in lines. */
export class SingerStream {
  readonly #selection: Selection;
  readonly #version: number | undefined;
  #schema: JsonSchema;

  constructor(selection: Selection, version: number | undefined) {
    this.#selection = selection;
    this.#schema = selection.schema;
    this.#version = selection.method === "FULL_TABLE" ? version : undefined;
  }

  schema(): string {
    const { stream, keyProperties, replicationKey } = this.#selection;
    return jsonLine({
      type: "SCHEMA",
      stream,
      schema: this.#schema,
      key_properties: keyProperties,
      bookmark_properties: replicationKey === null ? undefined : [replicationKey],
    });
  }

  /** Adds fields to the schema, because some targets cannot take a field that the schema lacks. */
  widened(added: Readonly<Record<string, FieldSchema>>): string {
    const properties = { ...propertiesOf(this.#schema), ...added };
    this.#schema = { ...this.#schema, properties };
    return this.schema();
  }

  records(lines: Lines, at: number): string {
    const stream = asciiJson(this.#selection.stream);
    const version = this.#version === undefined ? "" : `,"version":${this.#version}`;
    const time = new Date(at).toISOString();
    const head = `{"type":"RECORD","stream":${stream}${version},"time_extracted":"${time}","record":`;
    return splice(head, "}\n", lines);
  }

  bookmark(state: StreamState): object {
    const { replicationKey } = this.#selection;
    const value = replicationKey === null ? null : (state[replicationKey] ?? null);
    return { ...state, replication_key: replicationKey, replication_key_value: value };
  }

  /** Only after all rows of the table: targets drop what has an older version at once. */
  activation(): string {
    if (this.#version === undefined) return "";
    return jsonLine({ type: "ACTIVATE_VERSION", stream: this.#selection.stream, version: this.#version });
  }
}
