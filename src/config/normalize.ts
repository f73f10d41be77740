import { isDeepStrictEqual } from "node:util";
import { isObject, type JsonObject } from "../base/json.ts";
import { addDays, type Day, dayOf, parseDay } from "../base/time.ts";
import { configSpec, innerProperty, isDayProperty, type SpecProperty, typeOf } from "./spec.ts";

/** Removes empty values and objects of defaults, which forms send. Trims texts, splits lists, and makes UTC days. */
export function normalize(draft: JsonObject, parent: SpecProperty = configSpec()): JsonObject {
  const normal = Object.entries(draft).map(
    ([name, value]) => [name, normalValue(value, innerProperty(parent, name))] as const,
  );
  return Object.fromEntries(normal.filter(([, value]) => value !== undefined));
}

function normalValue(value: unknown, property: SpecProperty | undefined): unknown {
  if (value === null) return undefined;
  if (typeof value === "string") return normalText(value.trim(), property);
  if (typeof value === "boolean" && property?.enum !== undefined) return String(value);
  if (Array.isArray(value)) return normalList(value, property);
  if (isObject(value) && property !== undefined && typeOf(property) === "object") {
    return normalObject(value, property);
  }
  return value;
}

function normalText(text: string, property: SpecProperty | undefined): unknown {
  if (text === "") return property?.minLength === 0 ? text : undefined;
  if (property !== undefined && typeOf(property) === "array")
    return normalList(text.split(/[,\n]/), property);
  if (property && isDayProperty(property)) return parseDay(text) ?? daysAgo(text, property) ?? text;
  return property?.enum === undefined ? text : text.toLowerCase();
}

/** Makes "30d" the UTC day of 30 days ago, if the setting's pattern allows this form. */
function daysAgo(text: string, { pattern = "" }: SpecProperty): Day | undefined {
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? [];
  return days === undefined || !new RegExp(pattern).test(text)
    ? undefined
    : addDays(dayOf(Date.now()), -Number(days));
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
    isDeepStrictEqual(value, innerProperty(property, name)?.default);
  return Object.entries(normal).every(isDefault) ? undefined : normal;
}
