import { Ajv } from "ajv";
import { expect } from "vitest";
import { type Json, must } from "./airbyte-messages.ts";

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
    must(!/[\u0085\u2028\u2029\r]/.test(line), "no reader splits the line", line);
    must(message.type === "RECORD" || /^[\x20-\x7e]*$/.test(line), "all but records is ASCII", line);
    if (message.type === "RECORD") expectRecord(line, message, schemas.get(message.stream ?? ""));
    else expectSingerMessage(message, schemas);
    return message;
  });
  expect(messages.at(-1)?.type, "some targets lose the state unless it is the last line").toBe("STATE");
  return messages;
}

function expectSingerMessage(message: SingerMessage, schemas: Map<string, SingerMessage>): void {
  expect(["SCHEMA", "STATE", "ACTIVATE_VERSION"]).toContain(message.type);
  if (message.type === "SCHEMA") expectSchema(message, schemas);
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

function expectRecord(line: string, message: SingerMessage, schema: SingerMessage | undefined): void {
  if (schema?.schema === undefined) throw new Error(`A RECORD of "${message.stream}" before its SCHEMA`);
  const { time_extracted: time = "", record = {} } = message;
  must(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(time), "its time is in UTC", line);
  const { properties } = schema.schema;
  const unknown = Object.keys(record).filter((name) => !Object.hasOwn(properties, name));
  must(unknown.length === 0, `the SCHEMA has its fields, ${unknown.join()} too`, line);
  if (!ajv.validate(schema.schema, record)) expect.fail(`${ajv.errorsText()}: ${line}`);
}
