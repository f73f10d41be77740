import { Ajv } from "ajv";
import { expect } from "vitest";
import type { Json } from "./airbyte-messages.ts";

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

const ajv = new Ajv({ strict: false, validateFormats: false });

/**
 * Parses the lines of one Singer sync, decoded as UTF-8, and fails the test unless the strictest targets would take
 * them: only known messages, records that their schema describes whole, and a STATE as the last line.
 */
export function expectSingerMessages(lines: readonly string[]): SingerMessage[] {
  const schemas = new Map<string, SingerMessage>();
  const messages = lines.map((line) => {
    const message: SingerMessage = JSON.parse(line);
    expect(line, "no reader splits the line").not.toMatch(/[\u0085\u2028\u2029\r]/);
    if (message.type !== "RECORD") expect(line, "all but records is ASCII").toMatch(/^[\x20-\x7e]*$/);
    expectSingerMessage(message, schemas);
    return message;
  });
  expect(messages.at(-1)?.type, "some targets lose the state unless it is the last line").toBe("STATE");
  return messages;
}

function expectSingerMessage(message: SingerMessage, schemas: Map<string, SingerMessage>): void {
  expect(["SCHEMA", "RECORD", "STATE", "ACTIVATE_VERSION"]).toContain(message.type);
  if (message.type === "SCHEMA") expectSchema(message, schemas);
  if (message.type === "RECORD") expectRecord(message, schemas.get(message.stream ?? ""));
  if (message.type === "STATE") expect(message.value?.bookmarks).toBeTypeOf("object");
  if (message.type === "ACTIVATE_VERSION") expect(Number.isInteger(message.version)).toBe(true);
}

function expectSchema(message: SingerMessage, schemas: Map<string, SingerMessage>): void {
  const names = Object.keys(message.schema?.properties ?? {});
  const folded = new Set(names.map((name) => name.toLowerCase()));
  expect(folded.size, "no names differ by case alone").toBe(names.length);
  expect(names).toEqual(expect.arrayContaining([...(message.key_properties ?? [""])]));
  expect(names).toEqual(expect.arrayContaining([...(message.bookmark_properties ?? [])]));
  schemas.set(message.stream ?? "", message);
}

function expectRecord(message: SingerMessage, schema: SingerMessage | undefined): void {
  if (schema?.schema === undefined) throw new Error(`A RECORD of "${message.stream}" before its SCHEMA`);
  expect(message.time_extracted).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const unknown = Object.keys(message.record ?? {}).filter(
    (name) => !Object.hasOwn(schema.schema?.properties ?? {}, name),
  );
  expect(unknown, "fields that the SCHEMA lacks").toEqual([]);
  expect(ajv.validate(schema.schema, message.record), ajv.errorsText()).toBe(true);
}
