import type { Selection } from "../source/selection.ts";
import { type JsonSchema, propertiesOf } from "../source/singer-catalog.ts";
import type { FieldSchema, Lines, StreamState } from "../sync/event.ts";
import { asciiJson, splice } from "./language.ts";
import { withoutNuls } from "./nul.ts";
import { pruner } from "./prune.ts";

/** What one selected stream says in Singer's messages, each as whole lines. */
export class SingerStream {
  readonly #selection: Selection;
  readonly #version: number | undefined;
  readonly #nuls: (stream: string, count: number) => void;
  readonly #prune: ((line: string) => string) | undefined;
  #schema: JsonSchema;

  constructor(
    selection: Selection,
    version: number | undefined,
    nuls: (stream: string, count: number) => void,
  ) {
    this.#selection = selection;
    this.#schema = selection.schema;
    this.#version = selection.method === "FULL_TABLE" ? version : undefined;
    this.#nuls = nuls;
    this.#prune = selection.pruning && pruner(selection.pruning);
  }

  schema(): string {
    const { stream, keyProperties, replicationKey } = this.#selection;
    return line({
      type: "SCHEMA",
      stream,
      schema: this.#schema,
      key_properties: keyProperties,
      bookmark_properties: replicationKey === null ? undefined : [replicationKey],
    });
  }

  /** A user who has deselected anything has chosen the fields, so a new one is pruned instead. */
  widened(added: Readonly<Record<string, FieldSchema>>): string {
    if (this.#prune !== undefined) return "";
    const properties = { ...propertiesOf(this.#schema), ...added };
    this.#schema = { ...this.#schema, properties };
    return this.schema();
  }

  records(lines: Lines, at: number): string {
    const stream = asciiJson(this.#selection.stream);
    const version = this.#version === undefined ? "" : `,"version":${this.#version}`;
    const time = new Date(at).toISOString();
    const head = `{"type":"RECORD","stream":${stream}${version},"time_extracted":"${time}","record":`;
    return splice(head, "}\n", this.#cleaned(lines));
  }

  bookmark(state: StreamState): object {
    const { replicationKey } = this.#selection;
    const value = replicationKey === null ? null : (state[replicationKey] ?? null);
    return { ...state, replication_key: replicationKey, replication_key_value: value };
  }

  /** Only after the whole table: targets drop what has an older version at once. */
  activation(): string {
    if (this.#version === undefined) return "";
    return line({ type: "ACTIVATE_VERSION", stream: this.#selection.stream, version: this.#version });
  }

  #cleaned(lines: Lines): readonly string[] {
    const pruned = this.#prune === undefined ? lines : lines.map(this.#prune);
    let count = 0;
    const cleaned = pruned.map((text) => withoutNuls(text, () => count++));
    if (count > 0) this.#nuls(this.#selection.stream, count);
    return cleaned;
  }
}

const line = (message: object): string => `${asciiJson(message)}\n`;
