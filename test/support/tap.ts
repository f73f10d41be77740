import { Ajv } from "ajv";
import { expect } from "vitest";
import { expectLine, type Json, linesOf, must } from "./airbyte-messages.ts";
import { type Ended, file, type RunOptions, run, TAP } from "./cli.ts";

export type SingerMessage = {
  readonly type: string;
  readonly stream?: string;
  readonly record?: Json;
  readonly time_extracted?: string;
  readonly version?: number;
  readonly schema?: Json & { readonly properties: Json };
  readonly key_properties?: readonly string[];
  readonly bookmark_properties?: readonly string[];
  readonly value?: Json & { readonly bookmarks: Json };
};

type Log = { readonly level: string; readonly message: string } & Readonly<Record<string, unknown>>;

type Tapped = Ended & { readonly messages: readonly SingerMessage[]; readonly logs: readonly Log[] };

/**
 * Runs a sync and holds every message that it wrote against what the strictest targets take.
 * @param exits with which code; null for a run that a signal ends
 */
export async function tap(
  args: readonly string[],
  { exits = 0, ...options }: RunOptions & { readonly exits?: number | null } = {},
): Promise<Tapped> {
  const ended = await run(TAP, args, options);
  expect(ended.code, ended.stderr).toBe(exits);
  const logs = linesOf(ended.stderr).map((line): Log => JSON.parse(line));
  return { ...ended, logs, messages: expectSingerMessages(linesOf(ended.stdout)) };
}

type CatalogSchema = {
  selected?: unknown;
  inclusion?: unknown;
  properties?: Record<string, CatalogSchema>;
};

export type Catalog = {
  streams: {
    tap_stream_id: string;
    replication_method: string;
    selected?: unknown;
    schema: CatalogSchema;
    metadata: { breadcrumb: string[]; metadata: Record<string, unknown> }[];
  }[];
};

export async function discover(config: string): Promise<Catalog> {
  return JSON.parse((await run(TAP, ["--config", config, "--discover"])).stdout);
}

/** Writes a catalog as an orchestrator sends it back: these streams selected, and fields as they are named. */
export async function selection(
  catalog: Catalog,
  streams: readonly string[],
  fields: Readonly<Record<string, boolean>> = {},
): Promise<string> {
  const chosen = structuredClone(catalog);
  for (const { tap_stream_id: id, metadata } of chosen.streams) {
    for (const { breadcrumb, metadata: said } of metadata) {
      const path = [id, ...breadcrumb.filter((part) => part !== "properties")].join(".");
      said["selected"] = breadcrumb.length === 0 ? streams.includes(id) : (fields[path] ?? true);
    }
  }
  return await file("catalog.json", chosen);
}

export const recordsOf = (messages: readonly SingerMessage[], stream: string): readonly SingerMessage[] =>
  messages.filter((message) => message.type === "RECORD" && message.stream === stream);

/** Fails the test if a record of a stream has one of these fields. */
export function expectWithout(messages: readonly SingerMessage[], stream: string, ...fields: string[]): void {
  for (const { record } of recordsOf(messages, stream))
    for (const field of fields) expect(record).not.toHaveProperty(field);
}

export const schemasOf = (messages: readonly SingerMessage[], stream?: string): readonly SingerMessage[] =>
  messages.filter((message) => message.type === "SCHEMA" && message.stream === (stream ?? message.stream));

export const bookmarksOf = (messages: readonly SingerMessage[]): Readonly<Record<string, unknown>> =>
  messages.at(-1)?.value?.bookmarks ?? {};

const ajv = new Ajv({ strict: false, validateFormats: false });

/**
 * Parses the lines of one Singer sync, decoded as UTF-8, and fails the test unless the strictest targets would take
 * them: only known messages, records that their schema describes whole, and a STATE as the last line.
 */
export function expectSingerMessages(lines: readonly string[]): SingerMessage[] {
  const schemas = new Map<unknown, SingerMessage>();
  const messages = lines.map((line) => {
    const message: SingerMessage = JSON.parse(line);
    const { type, stream } = message;
    expectLine(line, type === "RECORD");
    if (type === "RECORD") expectRecord(line, message, schemas.get(stream));
    else if (type === "SCHEMA") schemas.set(stream, expectSchema(message));
    else if (type === "STATE") expect(message.value?.bookmarks).toBeTypeOf("object");
    else expect([type, Number.isInteger(message.version)]).toEqual(["ACTIVATE_VERSION", true]);
    return message;
  });
  expect(messages.at(-1)?.type, "some targets lose the state unless it is the last line").toBe("STATE");
  return messages;
}

function expectSchema(message: SingerMessage): SingerMessage {
  const { schema, key_properties: keys = [""], bookmark_properties: bookmarks = [] } = message;
  const names = Object.keys(schema?.properties ?? {});
  const folded = new Set(names.map((name) => name.toLowerCase()));
  expect(folded.size, "no names differ by case alone").toBe(names.length);
  expect(names).toEqual(expect.arrayContaining([...keys, ...bookmarks]));
  return message;
}

function expectRecord(line: string, message: SingerMessage, described: SingerMessage | undefined): void {
  const { schema } = { schema: undefined, ...described };
  if (schema === undefined) throw new Error(`A RECORD of "${message.stream}" before its SCHEMA`);
  const { time_extracted: time = "", record = {} } = message;
  must(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(time), "its time is in UTC", line);
  const { properties } = schema;
  const unknown = Object.keys(record).filter((name) => !Object.hasOwn(properties, name));
  must(unknown.length === 0, `the SCHEMA has its fields, ${unknown.join()} too`, line);
  if (!ajv.validate(schema, record)) expect.fail(`${ajv.errorsText()}: ${line}`);
}
