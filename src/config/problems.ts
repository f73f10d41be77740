import { isAbsolute } from "node:path";
import { isObject, type JsonObject, kindOf, quoted, valueAt } from "../base/json.ts";
import type { SchemaError } from "../base/json-schema.ts";
import { isDay } from "../base/time.ts";
import { addressProblem } from "./address.ts";
import { configSpec, type SpecProperty, settingsIn, typeOf, variableOf } from "./spec.ts";

/** A problem of one property. `text` continues the property's name and quotes no secret. */
export type Problem = { readonly path: string; readonly text: string };

/** The problems that ajv found, in words for the operator. */
export function schemaProblems(errors: readonly SchemaError[], draft: JsonObject): Problem[] {
  return errors.flatMap((error) => {
    const segments = error.instancePath.split("/").slice(1);
    const { missingProperty } = error.params;
    if (error.keyword === "required") {
      return [missing([...segments, String(missingProperty)])];
    }
    const property = propertyAt(segments);
    // Another rule names a day that does not exist.
    if (error.keyword === "pattern" && property.format === "date") return [];
    return [{ path: dottedName(segments), text: schemaText(error, property, valueAt(draft, segments)) }];
  });
}

function schemaText(error: SchemaError, property: SpecProperty, value: unknown): string {
  const { limit, pattern } = error.params;
  switch (error.keyword) {
    case "type":
      return `must be ${article(typeOf(property))}, not ${article(kindOf(value))}`;
    case "enum":
      return `must be one of ${(property.enum ?? []).map((word) => JSON.stringify(word)).join(", ")}`;
    case "minimum":
      return `must be at least ${limit}, not ${value}`;
    case "maximum":
      return `must be at most ${limit}, not ${value}`;
    case "maxLength":
      return `must be at most ${limit} characters long`;
    case "pattern":
      return `must look like this: ${property.pattern_descriptor ?? pattern}`;
    default:
      return error.message ?? "is wrong";
  }
}

/** Problems that no schema can describe, of properties whose type is right. */
export function ruleProblems(draft: JsonObject): Problem[] {
  return [
    ...dateProblems(draft),
    ...addressProblems(draft),
    ...externalProblems(draft),
    ...jobProblems(draft),
    ...privacyProblems(draft),
  ];
}

function dateProblems(draft: JsonObject): Problem[] {
  const dayProblems = (value: unknown, path: string): Problem[] =>
    typeof value !== "string" || isDay(value) ? [] : [{ path, text: NO_DAY }];
  const wrong = [...settingsIn()].flatMap(({ path, property }) => {
    const value = valueAt(draft, path);
    if (property.format === "date") return dayProblems(value, dottedName(path));
    if (property.items?.format !== "date" || !Array.isArray(value)) return [];
    return value.flatMap((day, index) => dayProblems(day, dottedName([...path, String(index)])));
  });
  const { start_date: start, end_date: end } = draft;
  if (typeof start !== "string" || typeof end !== "string" || !isDay(start) || !isDay(end)) return wrong;
  if (start <= end) return wrong;
  return [...wrong, { path: "start_date", text: `must not be after end_date: ${start} is after ${end}` }];
}

/** Quotes nothing: people paste keys into the wrong field. */
const NO_DAY = "must be a date that exists, YYYY-MM-DD or a date-time";

function addressProblems(draft: JsonObject): Problem[] {
  const { allow_insecure_http: insecure } = draft;
  return [["base_url"], ["external_api", "api_url"]].flatMap((path) => {
    const value = valueAt(draft, path);
    const text = typeof value === "string" ? addressProblem(value, insecure === true) : undefined;
    return text === undefined ? [] : [{ path: dottedName(path), text }];
  });
}

/** Whether a job needs the External API. */
const JOBS = [
  { name: "company_lookup", paid: true },
  { name: "email_verification", paid: true },
  { name: "email_check", paid: false },
] as const;

function jobProblems(draft: JsonObject): Problem[] {
  return JOBS.flatMap(({ name, paid }) => {
    const job = draft[name];
    if (!isObject(job)) return [];
    // The settings that say what a job works on: a list, a file, or a stream.
    const inputs = Object.keys(configSpec().properties?.[name]?.properties ?? {}).filter((input) =>
      /^(domains|emails|from_)/.test(input),
    );
    const isIdle = inputs.every((input) => job[input] === undefined || job[input] === false);
    const text = `has nothing to work on: set one of ${inputs.join(", ")}, or remove ${name}`;
    const needsApi = paid && !isObject(draft["external_api"]);
    const api = { path: name, text: "needs external_api: set its api_url and api_key" };
    return [...(isIdle ? [{ path: name, text }] : []), ...(needsApi ? [api] : [])];
  });
}

/**
 * A problem of receipts without an absolute path: in a folder that is thrown away they are lost, and what was bought would
 * be bought again. @param located the draft with absolute paths
 */
export function receiptsProblems(draft: JsonObject, { receipts_file: path }: JsonObject): Problem[] {
  const { receipts_file: file } = draft;
  const hasJobs = JOBS.some(({ name }) => isObject(draft[name]));
  if (!hasJobs || typeof file !== "string" || file === "" || isAbsolute(file)) return [];
  return [{ path: "receipts_file", text: `must be an absolute path here, such as ${quoted(String(path))}` }];
}

function externalProblems({ external_api: external }: JsonObject): Problem[] {
  if (!isObject(external)) return [];
  return ["api_url", "api_key"]
    .filter((name) => external[name] === undefined)
    .map((name) => missing(["external_api", name]));
}

function privacyProblems({ hash_fields: fields, hash_salt: salt }: JsonObject): Problem[] {
  if (fields === undefined || salt !== undefined) return [];
  const text = `is missing: hash_fields needs it. Set it in the config or as ${variableOf(["hash_salt"])}`;
  return [{ path: "hash_salt", text }];
}

const missing = (path: readonly string[]): Problem => ({
  path: dottedName(path),
  text: `is missing: set it in the config or as ${variableOf(path)}`,
});

/** `external_api.api_url`, `ignore_missing_days[2]`. */
function dottedName(segments: readonly string[]): string {
  return segments.reduce(
    (name, part) => (/^\d+$/.test(part) ? `${name}[${part}]` : (name && `${name}.${part}`) || part),
    "",
  );
}

const propertyAt = (segments: readonly string[]): SpecProperty =>
  segments.reduce<SpecProperty>(
    (property, part) => property.properties?.[part] ?? property.items ?? property,
    configSpec(),
  );

const article = (noun: string): string =>
  /^[aeio]/.test(noun) ? `an ${noun}` : noun === "null" ? noun : `a ${noun}`;
