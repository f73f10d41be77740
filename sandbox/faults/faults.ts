import { ANSWER_FAULTS } from "./answer-faults.ts";
import { CUT_FAULTS } from "./cut-faults.ts";
import { DISTORTION_FAULTS } from "./distortion-faults.ts";
import { EVENT_FAULTS } from "./event-faults.ts";
import type { Fault, FaultSpec } from "./fault.ts";
import { JOB_FAULTS } from "./job-faults.ts";
import { LINE_FAULTS } from "./line-faults.ts";

/** Every fault by name, in the order in which a help text shows them. */
const FAULTS: ReadonlyMap<string, FaultSpec> = new Map(
  [CUT_FAULTS, LINE_FAULTS, DISTORTION_FAULTS, ANSWER_FAULTS, EVENT_FAULTS, JOB_FAULTS].flatMap((table) =>
    Object.entries(table),
  ),
);

/** How to write each fault, and what it does. */
export function describeFaults(): readonly { readonly usage: string; readonly description: string }[] {
  return [...FAULTS].map(([name, spec]) => {
    const choices = spec.argument?.choices?.join(", ");
    const description = choices === undefined ? spec.description : `${spec.description}: ${choices}`;
    return { usage: faultUsage(name, spec), description };
  });
}

/** A fault's name with what it takes, as in `omit=K` or `429[=SECONDS]`. */
function faultUsage(name: string, { argument, options = [] }: FaultSpec): string {
  const value = argument === undefined ? "" : `=${argument.label}`;
  const own = options.map((option) => `[:${option}=…]`).join("");
  return `${name}${argument?.fallback === undefined ? value : `[${value}]`}${own}`;
}

const QUALIFIERS = ["path", "times", "after", "skip", "from", "to", "of"];

/** Reads `name[=value][:key=value…]`. Throws a message that lists the known faults. */
export function parseFault(expression: string): Fault {
  const [head = "", ...rest] = expression.split(/:(?=[a-z]+=)/);
  const [name, value] = keyValue(head);
  const spec = FAULTS.get(name);
  if (spec === undefined) throw refused(expression, `it names no fault; known are ${known()}`);
  const given = new Map(rest.map(keyValue).map(([key, text]) => [key, text ?? ""]));
  const options = ownOptions(expression, name, spec, given);
  const text = argumentOf(expression, name, spec, value);
  return {
    name,
    spec,
    text,
    value: Number(text),
    options,
    path: given.get("path") ?? spec.path,
    times:
      given.get("times") === "always"
        ? Infinity
        : whole(expression, given, "times", lasts(spec) ? Infinity : 1),
    skip: whole(expression, given, "skip", 0),
    after:
      given.get("after") === "all"
        ? Infinity
        : given.has("after")
          ? whole(expression, given, "after", 0)
          : undefined,
    from: given.get("from"),
    to: given.get("to"),
    ofRows: ofRows(expression, given.get("of")),
    nth: 0,
  };
}

const lasts = ({ kind, lasts = kind === "distortion" }: FaultSpec): boolean => lasts;

function ownOptions(
  expression: string,
  name: string,
  spec: FaultSpec,
  given: ReadonlyMap<string, string>,
): Map<string, string> {
  const own = [...given].filter(([key]) => !QUALIFIERS.includes(key));
  const unknown = own.find(([key]) => !spec.options?.includes(key));
  if (unknown === undefined) return new Map(own);
  const takes = [...QUALIFIERS, ...(spec.options ?? [])].join(", ");
  throw refused(expression, `"${name}" has no "${unknown[0]}"; it takes ${takes}`);
}

function argumentOf(expression: string, name: string, spec: FaultSpec, given: string | undefined): string {
  const { argument } = spec;
  if (argument === undefined) {
    if (given !== undefined) throw refused(expression, `"${name}" takes no value`);
    return "";
  }
  const text = given ?? argument.fallback;
  if (text === undefined || text === "") throw refused(expression, `write it as ${faultUsage(name, spec)}`);
  if (argument.choices?.includes(text) === false)
    throw refused(expression, `${argument.label} must be ${argument.choices.join(", ")}`);
  if (argument.type === "number" && !/^-?\d+$/.test(text))
    throw refused(expression, `${argument.label} must be an integer`);
  return text;
}

function ofRows(expression: string, of: string | undefined): boolean {
  if (of !== undefined && of !== "rows") throw refused(expression, "of must be rows");
  return of === "rows";
}

function whole(expression: string, given: ReadonlyMap<string, string>, key: string, usual: number): number {
  const text = given.get(key);
  if (text === undefined) return usual;
  if (!/^\d+$/.test(text)) throw refused(expression, `${key} must be a number`);
  return Number(text);
}

function keyValue(text: string): [string, string | undefined] {
  const at = text.indexOf("=");
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

const known = (): string => [...FAULTS.keys()].join(", ");

const refused = (expression: string, why: string): RangeError =>
  new RangeError(`Cannot read the fault "${expression}": ${why}`);
