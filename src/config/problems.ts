import { isAbsolute } from "node:path";
import { isObject, type JsonObject, quoted, valueAt } from "../base/json.ts";
import type { SchemaError } from "../base/json-schema.ts";
import { oneOf } from "../base/text.ts";
import { isDay } from "../base/time.ts";
import { addressProblem } from "./address.ts";
import {
  configSpec,
  isDayProperty,
  isFile,
  isItemList,
  isRoot,
  type SpecProperty,
  settingsIn,
  typeOf,
  variableOf,
} from "./spec.ts";

/** A problem of one property. `path`: its dotted name. `text` continues the name and quotes no secret. */
export type Problem = { readonly path: string; readonly text: string };

/** The problems that ajv found, in words for a person. */
export const schemaProblems = (errors: readonly SchemaError[]): Problem[] =>
  errors.map((error) => {
    const path = error.instancePath.split("/").slice(1);
    if (error.keyword === "required") return missing([...path, String(error.params["missingProperty"])]);
    const { keyword, params, data } = error;
    const property = error.parentSchema as SpecProperty;
    const value = property.airbyte_secret === true ? null : data;
    const most = `must have at most ${params["limit"]} characters`;
    const text =
      keyword === "maxLength" ? most : mustBe(value, ruleOf(property, isRoot(path.at(-1)) && data));
    return { path: path.join("."), text };
  });

/** The rule of a property in words. @param address the wrong value of the root of an API */
function ruleOf(property: SpecProperty & { minimum?: number; maximum?: number }, address: unknown): string {
  const { enum: words, minimum, maximum, pattern_descriptor: form = "text", properties = {} } = property;
  switch (typeOf(property)) {
    case "integer":
      return `a whole number ${maximum === undefined ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`}`;
    case "boolean":
      return "true or false";
    case "array":
      return "a list of texts";
    case "object":
      return `an object, such as {${quoted(Object.keys(properties)[0] ?? "")}: …}`;
    default:
      if (words !== undefined) return oneOf(words.map(String), quoted);
      return typeof address === "string" && HOST.test(address) ? `"https://${address}"` : form;
  }
}

const HOST = /^(?:[a-z-]+\.)+[a-z]{2,}(?::\d{1,5})?$/i;
/** Numbers, dates, short words and hosts. */
const PLAIN =
  /^(?:[-+\d.,:/TZ ]{1,20}|[a-z]{1,12}|(?:[a-z]{3,5}:\/\/)?(?:[a-z-]+\.)+[a-z]{2,}(?::\d{1,5})?)$/i;

/** Quotes only values that cannot be a key, because people paste keys into wrong settings. */
function mustBe(value: unknown, rule: string): string {
  const isText = typeof value === "string" && PLAIN.test(value);
  if (!isText && typeof value !== "number" && typeof value !== "boolean") return `must be ${rule}`;
  const isQuoted = typeof value === "string" && /^(?:true|false|\d+)$/.test(value) && !rule.includes('"');
  return `is ${JSON.stringify(value)}: it must be ${rule}${isQuoted ? ", without quotes" : ""}`;
}

/** Problems that no schema can describe, of properties whose type is right. */
export const ruleProblems = (draft: JsonObject): Problem[] => [
  ...textProblems(draft),
  ...dateProblems(draft),
  ...externalProblems(draft),
  ...jobProblems(draft),
  ...privacyProblems(draft),
];

/** Editors write these characters for lost characters, so two different salts could become equal. */
const LOST = /[\ufffd\p{Surrogate}]/u;

const textProblems = (draft: JsonObject): Problem[] =>
  [...settingsIn()].flatMap(({ path, property }) => {
    const value = valueAt(draft, path);
    return [value].flat().flatMap((text, nth) => {
      if (typeof text !== "string") return [];
      const problem = textProblem(text, path.at(-1), property, draft["allow_insecure_http"] === true);
      const place = [...path, ...(Array.isArray(value) ? [nth] : [])].join(".");
      return problem === undefined ? [] : [{ path: place, text: problem }];
    });
  });

function textProblem(text: string, name: string | undefined, property: SpecProperty, insecure: boolean) {
  // A damaged item of a list is no problem of the config: the run skips only this item.
  if (!isItemList(name) && LOST.test(text))
    return "has characters that were lost (U+FFFD): write it again, as UTF-8";
  if (isDayProperty(property.items ?? property) && !isDay(text))
    return mustBe(text, "a date that exists, such as 2026-01-31");
  if (isFile(name) && /^~(?:\/|$)/.test(text))
    return 'begins with "~", which only shells replace. Write the whole path';
  return isRoot(name) ? addressProblem(text, insecure) : undefined;
}

function dateProblems({ start_date: start, end_date: end }: JsonObject): Problem[] {
  if (typeof start !== "string" || typeof end !== "string" || !isDay(start) || !isDay(end)) return [];
  const text = `must not be after end_date: ${start} is after ${end}`;
  return start <= end ? [] : [{ path: "start_date", text }];
}

/** The settings of jobs. `paid`: the job needs `external_api`. */
const JOBS = [
  { name: "company_lookup", paid: true },
  { name: "email_verification", paid: true },
  { name: "email_check", paid: false },
] as const;

function jobProblems(draft: JsonObject): Problem[] {
  return JOBS.flatMap(({ name, paid }) => {
    const job = draft[name];
    if (!isObject(job)) return [];
    // Settings that name the items of a job: a list, a file, or a stream.
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

/** Refuses a relative path of receipts, because platforms remove the folder. @param located the draft with absolute paths */
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

const privacyProblems = ({ hash_fields: fields, hash_salt: salt }: JsonObject): Problem[] =>
  fields === undefined || salt !== undefined ? [] : [missing(["hash_salt"], " (hash_fields needs it)")];

const missing = (path: readonly string[], why = ""): Problem => ({
  path: path.join("."),
  text: `is missing${why}: set it in the config or as ${variableOf(path)}`,
});
