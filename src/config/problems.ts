import { isObject, type JsonObject, kindOf } from "../json.ts";
import type { SchemaError } from "../schema-checks.ts";
import { isDay } from "../timestamp.ts";
import { addressProblem } from "./address.ts";
import { propertiesOf, type SpecProperty, typeOf, variableOf } from "./spec.ts";

/** What is wrong with one property. `text` continues the property's name and holds no secret. */
export type Problem = { readonly path: string; readonly text: string };

/** What ajv found, in words for the operator. */
export function schemaProblems(
  errors: readonly SchemaError[],
  draft: JsonObject,
  spec: SpecProperty,
): Problem[] {
  return errors.map((error) => {
    const segments = error.instancePath.split("/").slice(1);
    const { missingProperty } = error.params;
    if (error.keyword === "required") return missing([...segments, String(missingProperty)]);
    return {
      path: nameOf(segments),
      text: schemaText(error, propertyAt(spec, segments), valueAt(draft, segments)),
    };
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
    case "pattern":
      return `must look like this: ${property.pattern_descriptor ?? pattern}`;
    default:
      return error.message ?? "is wrong";
  }
}

/** What no schema can say. Looks only at properties whose type is right. */
export function ruleProblems(draft: JsonObject, spec: SpecProperty): Problem[] {
  return [...dateProblems(draft, spec), ...addressProblems(draft), ...jobProblems(draft)];
}

function dateProblems(draft: JsonObject, spec: SpecProperty): Problem[] {
  const wrong = [...propertiesOf(spec)].flatMap(({ path, property }) => {
    const value = valueAt(draft, path);
    if (property.format === "date") return dayProblems(value, nameOf(path));
    if (property.items?.format !== "date" || !Array.isArray(value)) return [];
    return value.flatMap((day, index) => dayProblems(day, nameOf([...path, String(index)])));
  });
  const { start_date: start, end_date: end } = draft;
  if (typeof start !== "string" || typeof end !== "string" || !isDay(start) || !isDay(end)) return wrong;
  if (start <= end) return wrong;
  return [...wrong, { path: "start_date", text: `must not be after end_date: ${start} is after ${end}` }];
}

/** Quotes ten characters at most: what is no date at all may be anything, even a key. */
function dayProblems(value: unknown, path: string): Problem[] {
  const [begin] = typeof value === "string" && !isDay(value) ? (/^\d{4}-\d{2}-\d{2}/.exec(value) ?? []) : [];
  if (begin === undefined) return [];
  return [{ path, text: `must be a date that exists, YYYY-MM-DD or a date-time: cannot read "${begin}"` }];
}

function addressProblems(draft: JsonObject): Problem[] {
  const { allow_insecure_http: insecure } = draft;
  return [["base_url"], ["external_api", "api_url"]].flatMap((path) => {
    const value = valueAt(draft, path);
    const text = typeof value === "string" ? addressProblem(value, insecure === true) : undefined;
    return text === undefined ? [] : [{ path: nameOf(path), text }];
  });
}

/** The list that says what each job is about, and whether it needs the External API. */
const JOBS = [
  { name: "company_lookup", list: "domains", paid: true },
  { name: "email_verification", list: "emails", paid: true },
  { name: "email_check", list: "emails", paid: false },
] as const;

function jobProblems(draft: JsonObject): Problem[] {
  const { external_api: external } = draft;
  const half = isObject(external)
    ? ["api_url", "api_key"]
        .filter((name) => external[name] === undefined)
        .map((name) => missing(["external_api", name]))
    : [];
  const jobs = JOBS.flatMap(({ name, list, paid }) => {
    const job = draft[name];
    if (!isObject(job)) return [];
    const { [list]: items, from_companies: all } = job;
    const idle = items === undefined && !(name === "company_lookup" && all === true);
    return [
      ...(idle ? [{ path: name, text: idleText(name, list) }] : []),
      ...(paid && external === undefined
        ? [{ path: name, text: "needs external_api: set its api_url and api_key" }]
        : []),
    ];
  });
  return [...half, ...jobs];
}

function idleText(name: string, list: string): string {
  const all = name === "company_lookup" ? " or set from_companies to true" : "";
  return `names nothing to work on: fill ${list}${all}, or remove ${name}`;
}

const missing = (path: readonly string[]): Problem => ({
  path: nameOf(path),
  text: `is missing: set it in the config or as ${variableOf(path)}`,
});

/** `external_api.api_url`, `ignore_missing_days[2]`. */
function nameOf(segments: readonly string[]): string {
  return segments.reduce(
    (name, part) => (/^\d+$/.test(part) ? `${name}[${part}]` : (name && `${name}.${part}`) || part),
    "",
  );
}

function valueAt(value: unknown, segments: readonly string[]): unknown {
  return segments.reduce<unknown>((inner, part) => {
    if (Array.isArray(inner)) return inner[Number(part)];
    return isObject(inner) ? inner[part] : undefined;
  }, value);
}

function propertyAt(spec: SpecProperty, segments: readonly string[]): SpecProperty {
  return segments.reduce((property, part) => property.properties?.[part] ?? property.items ?? property, spec);
}

const article = (noun: string): string =>
  /^[aeio]/.test(noun) ? `an ${noun}` : noun === "null" ? noun : `a ${noun}`;
