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
    argument?.type === "CallExpression" || (argument?.type === "Identifier" && argument.name !== "undefined")
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

/**
 * Every change that the rules make of a source: `{ start, end, by, line, before, after, block }`. `block` is where the block
 * begins that runs the change, 0 for the module itself.
 */
export function mutationsOf(source) {
  const found = [];
  const text = ({ start, end }) => source.slice(start, end);
  visit(source, (node, block) => {
    for (const change of RULES[node.type]?.(node, text) ?? []) found.push({ ...change, block });
  });
  return found
    .filter(({ start, end, by }) => source.slice(start, end) !== by)
    .map((change) => described(source, change));
}

/** Walks over all nodes that run, each with the start of the innermost block that holds it. */
function visit(source, visitor) {
  const walk = (node, block) => {
    if (Array.isArray(node)) for (const child of node) walk(child, block);
    if (typeof node?.type !== "string" || SKIPPED.test(node.type)) return;
    visitor(node, block);
    for (const [name, child] of Object.entries(node)) {
      if (name === "typeAnnotation") continue;
      const isBlock = child?.type === "BlockStatement" || isExpressionBody(node, name);
      walk(child, isBlock ? child.start : block);
    }
  };
  walk(parseAst(source, { lang: "ts" }).body, 0);
}

const isExpressionBody = ({ type, expression }, name) =>
  type === "ArrowFunctionExpression" && expression && name === "body";

/** The source in which each block adds its place (`file:start`) to `globalThis.__hits` when it runs. */
export function withHits(source, file) {
  const inserts = [];
  const hit = (start) => `globalThis.__hits?.add(${JSON.stringify(`${file}:${start}`)})`;
  visit(source, (node) => {
    if (node.type === "BlockStatement") inserts.push([node.start + 1, `${hit(node.start)};`]);
    if (node.type !== "ArrowFunctionExpression" || !node.expression) return;
    inserts.push([node.body.start, `(${hit(node.body.start)}, (`], [node.body.end, "))"]);
  });
  return inserts
    .sort(([a], [b]) => b - a)
    .reduce((text, [at, insert]) => text.slice(0, at) + insert + text.slice(at), `${source}\n${hit(0)};\n`);
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
