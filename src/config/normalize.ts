import { isDeepStrictEqual } from "node:util";
import { isObject, type JsonObject } from "../json.ts";
import { parseDay } from "../timestamp.ts";
import { type SpecProperty, typeOf } from "./spec.ts";

/**
 * A draft without what counts as absent (nulls, empty strings, empty lists, objects that hold only defaults), with
 * strings trimmed, dates as UTC days and booleans where the spec has them as words. Idempotent.
 */
export function normalize(draft: JsonObject, spec: SpecProperty): JsonObject {
  const normal = Object.entries(draft).map(
    ([name, value]) => [name, normalValue(value, spec.properties?.[name])] as const,
  );
  return Object.fromEntries(normal.filter(([, value]) => value !== undefined));
}

function normalValue(value: unknown, property: SpecProperty | undefined): unknown {
  if (value === null || value === "") return undefined;
  if (typeof value === "string") return normalText(value.trim(), property);
  if (typeof value === "boolean" && property?.enum !== undefined) return String(value);
  if (Array.isArray(value)) return normalList(value, property);
  if (isObject(value) && property !== undefined && typeOf(property) === "object") {
    return normalObject(value, property);
  }
  return value;
}

function normalText(text: string, property: SpecProperty | undefined): string | undefined {
  if (text === "") return undefined;
  if (property?.format === "date") return parseDay(text) ?? text;
  return property?.enum === undefined ? text : text.toLowerCase();
}

function normalList(list: readonly unknown[], property: SpecProperty | undefined): unknown {
  const normal = list
    .map((value) => normalValue(value, property?.items))
    .filter((value) => value !== undefined);
  return normal.length === 0 ? undefined : normal;
}

function normalObject(draft: JsonObject, property: SpecProperty): JsonObject | undefined {
  const normal = normalize(draft, property);
  const isDefault = ([name, value]: [string, unknown]): boolean =>
    isDeepStrictEqual(value, property.properties?.[name]?.default);
  return Object.entries(normal).every(isDefault) ? undefined : normal;
}
