// Single changes to a TypeScript file that a test should notice.
import { parseAst } from "rolldown/parseAst";

const SWAPPED = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "&&": "||",
  "||": "&&",
};

/** The changes of one node: each replaces the text from `start` to `end`. */
const RULES = {
  BinaryExpression: (node, text) => operator(node, text),
  LogicalExpression: (node, text) =>
    node.operator === "??" ? [replace(node, text(node.left))] : operator(node, text),
  UnaryExpression: (node, text) => (node.operator === "!" ? [replace(node, text(node.argument))] : []),
  ConditionalExpression: ({ consequent, alternate, ...node }, text) => [
    replace(node, `(${text(consequent)})`),
    replace(node, `(${text(alternate)})`),
  ],
  IfStatement: ({ test }) => [replace(test, "true"), replace(test, "false")],
  WhileStatement: ({ test }) => [replace(test, "false")],
  ExpressionStatement: (node, text) =>
    ["CallExpression", "AwaitExpression", "AssignmentExpression", "UpdateExpression"].includes(
      node.expression.type,
    ) && !text(node).startsWith("super(")
      ? [replace(node, ";")]
      : [],
  Literal: (node) => {
    if (typeof node.value === "boolean") return [replace(node, String(!node.value))];
    if (typeof node.value === "number") return [replace(node, String(node.value + 1))];
    return [];
  },
  ReturnStatement: ({ argument }) =>
    argument?.type === "CallExpression" || argument?.type === "Identifier"
      ? [replace(argument, "undefined as never")]
      : [],
  ContinueStatement: (node) => [replace(node, ";")],
  BreakStatement: (node) => [replace(node, ";")],
  ThrowStatement: (node) => [replace(node, ";")],
};

/** Types, imports and the members of enums hold nothing that runs. */
const SKIPPED = /^(TS(?!AsExpression|NonNull|Satisfies)|Import|ExportAll)/;

const replace = ({ start, end }, by) => ({ start, end, by });

function operator({ left, right, operator: sign }, text) {
  const other = SWAPPED[sign];
  if (other === undefined || /^["'`]/.test(text(left)) || /^["'`]/.test(text(right))) return [];
  return [{ start: left.end, end: right.start, by: ` ${other} `, was: sign }];
}

/** Every change that the rules make of a source: `{ start, end, by, line, before, after }`. */
export function mutationsOf(source) {
  const found = [];
  const text = ({ start, end }) => source.slice(start, end);
  const visit = (node) => {
    if (node === null || typeof node !== "object") return;
    if (Array.isArray(node)) return void node.forEach(visit);
    if (typeof node.type !== "string" || SKIPPED.test(node.type)) return;
    found.push(...(RULES[node.type]?.(node, text) ?? []));
    for (const [name, child] of Object.entries(node)) if (name !== "typeAnnotation") visit(child);
  };
  visit(parseAst(source, { lang: "ts" }).body);
  return found
    .filter(({ start, end, by }) => source.slice(start, end) !== by)
    .map((change) => described(source, change));
}

/** Adds the number of the line, and the line before and after, trimmed. */
function described(source, change) {
  const { start, end, by } = change;
  const from = source.lastIndexOf("\n", start - 1) + 1;
  const to = source.indexOf("\n", end);
  const until = to < 0 ? source.length : to;
  return {
    ...change,
    line: source.slice(0, start).split("\n").length,
    before: source.slice(from, until).trim(),
    after: (source.slice(from, start) + by + source.slice(end, until)).trim(),
  };
}
