// Single changes to a TypeScript file that a test should notice.
import { parseAst } from "rolldown/parseAst";

const SIGNS = {
  "===": ["!=="],
  "!==": ["==="],
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  "|": ["&"],
  "&": ["|"],
  "&&": ["||"],
  "||": ["&&"],
  "??=": ["="],
  "||=": ["&&="],
  "&&=": ["||="],
  "+=": ["-="],
  "-=": ["+="],
};

/** Functions and methods that stand in for each other. */
const TWINS = new Map(
  [
    ["min", "max"],
    ["some", "every"],
    ["floor", "ceil"],
    ["earlier", "later"],
    ["startsWith", "endsWith"],
    ["push", "unshift"],
    ["shift", "pop"],
    ["find", "findLast"],
    ["indexOf", "lastIndexOf"],
    ["padStart", "padEnd"],
    ["all", "race"],
  ].flatMap(([one, other]) => [
    [one, other],
    [other, one],
  ]),
);

/** Methods that can be left out: what they are called on stands in their place. */
const OPTIONAL = /^(filter|toSorted|sort|reverse|trim|slice|toLowerCase|concat|catch|replace|replaceAll)$/;

/** Each turns a regular expression into another. */
const LOOSER = [
  [/^\^/, ""],
  [/\$$/, ""],
  [/(?<![\\(])\+/, "*"],
  [/(?<![\\(])\*/, "+"],
  [/(?<![\\(])\?(?![:=!<])/, ""],
];

const SIMPLE = /^(Expression|If|ForOf|For|While|Throw)Statement$/;

/** The changes of one node: each replaces the text from `start` to `end`. */
const RULES = {
  BinaryExpression: (node, text) => operator(node, text),
  LogicalExpression: (node, text) =>
    node.operator === "??" ? [replace(node, text(node.left))] : operator(node, text),
  AssignmentExpression: (node, text) => operator(node, text),
  UnaryExpression: (node, text) => (/^[!-]$/.test(node.operator) ? [replace(node, text(node.argument))] : []),
  UpdateExpression: (node, text) => {
    const other = node.operator === "++" ? "--" : "++";
    return [replace(node, text(node).replace(node.operator, other))];
  },
  AwaitExpression: (node, text) => [replace(node, text(node.argument))],
  ConditionalExpression: ({ consequent, alternate, test, ...node }, text) => [
    replace(node, `(${text(consequent)})`),
    replace(node, `(${text(alternate)})`),
    { start: test.end, end: node.end, by: ` ? ${text(alternate)} : ${text(consequent)}` },
  ],
  IfStatement: ({ test, consequent, alternate }, text) => [
    replace(test, "true"),
    replace(test, "false"),
    ...(alternate === null ? [] : swapped(consequent, alternate, text)),
  ],
  WhileStatement: ({ test }) => [replace(test, "false")],
  ForOfStatement: (node) => [replace(node, ";")],
  ExpressionStatement: (node, text) => (text(node).startsWith("super(") ? [] : [replace(node, ";")]),
  BlockStatement: ({ body }, text) => neighbours(body, text),
  CallExpression: ({ arguments: given, ...node }, text) => [
    ...(SYMMETRIC.test(text(node.callee)) ? [] : neighbours(given, text)),
    ...leftOut(node, text),
  ],
  NewExpression: ({ arguments: given }, text) => neighbours(given, text),
  MemberExpression: ({ property, computed }) => (computed ? [] : twin(property)),
  Identifier: (node) => (/^(earlier|later)$/.test(node.name) ? twin(node) : []),
  SpreadElement: (node) => [replace(node, "...({} as never)")],
  Literal: (node) => {
    if (node.regex !== undefined) return looser(node);
    if (typeof node.value === "boolean") return [replace(node, String(!node.value))];
    if (typeof node.value !== "number") return [];
    const { value } = node;
    const others = value >= 4 ? [value + 1, Math.floor(value / 2), value * 2] : [value + 1];
    return others.map((other) => replace(node, String(other)));
  },
  ReturnStatement: ({ argument }) =>
    argument?.type === "CallExpression" || (argument?.type === "Identifier" && argument.name !== "undefined")
      ? [replace(argument, "undefined as never")]
      : [],
  ContinueStatement: (node) => [replace(node, ";")],
  BreakStatement: (node) => [replace(node, ";")],
  ThrowStatement: (node) => [replace(node, ";")],
};

/** The order of their arguments says nothing. */
const SYMMETRIC = /^(Math\.(max|min|imul)|earlier|later)$/;

/** Types, imports and the members of enums hold nothing that runs. */
const SKIPPED = /^(TS(?!AsExpression|NonNull|Satisfies)|Import|ExportAll)/;

const replace = ({ start, end }, by) => ({ start, end, by });

/** The sign alone is changed, so that brackets beside it stay. */
function operator({ left, right, operator: sign }, text) {
  if (SIGNS[sign] === undefined || /^["'`]/.test(text(left)) || /^["'`]/.test(text(right))) return [];
  const start = left.end + text({ start: left.end, end: right.start }).indexOf(sign);
  return SIGNS[sign].map((by) => ({ start, end: start + sign.length, by }));
}

/** Statements, or arguments, of which each trades places with the next. */
const neighbours = (nodes, text) =>
  nodes.slice(1).flatMap((node, nth) => {
    const before = nodes[nth];
    const isFree = [before, node].every(({ type }) => !/Statement$/.test(type) || SIMPLE.test(type));
    return isFree && !/Declaration$/.test(before.type + node.type) ? swapped(before, node, text) : [];
  });

const swapped = (a, b, text) => [
  { start: a.start, end: b.end, by: text(b) + text({ start: a.end, end: b.start }) + text(a) },
];

const twin = (node) => (TWINS.has(node.name) ? [replace(node, TWINS.get(node.name))] : []);

const leftOut = ({ callee, ...node }, text) =>
  callee.type === "MemberExpression" && OPTIONAL.test(callee.property.name)
    ? [replace(node, text(callee.object))]
    : [];

function looser(node) {
  const { pattern, flags } = node.regex;
  return LOOSER.map(([from, to]) => pattern.replace(from, to))
    .filter((other) => other !== pattern && other !== "")
    .map((other) => replace(node, `/${other}/${flags}`));
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

/** A change that somebody chose, as `mutationsOf` gives it. */
export function mutationAt(source, change) {
  let [block, length] = [0, source.length];
  visit(source, (node) => {
    const body =
      node.type === "BlockStatement" ? node : isExpressionBody(node, "body") ? node.body : undefined;
    if (body === undefined || body.start > change.start || body.end < change.end) return;
    if (body.end - body.start < length) [block, length] = [body.start, body.end - body.start];
  });
  return described(source, { ...change, block });
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

/** Adds the number of the line, and the lines before and after, trimmed. */
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
