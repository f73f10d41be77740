// Tables in Markdown.
import { median, ratio } from "./measure.js";

const seconds = ({ seconds }) => seconds;
const cpu = (run) => run.cpu;
const peak = ({ peakMiB }) => peakMiB;

const NAMES = {
  ours: "this connector",
  "ours, private": "this connector, one field dropped and one hashed",
  splice: "the least: parse, check, splice (`bench/peers/splice.js`)",
  plain: "the usual loop: parse, check, stringify (`bench/peers/plain.js`)",
  jq: "`curl` into `jq -c`",
  wire: "the wire alone: `curl` into `wc`",
  "ours, gzip": "this connector, body gzipped",
  "splice, gzip": "the least, body gzipped",
};

/** A table whose first columns (one, unless said otherwise) are texts. */
export function table(head, rows, texts = 1) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, nth) => (nth < texts ? "---" : "---:"));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

const span = ({ median, least, most }) => `**${median.toFixed(2)}** (${least.toFixed(2)}–${most.toFixed(2)})`;

/** Ratios first: they mean something on any machine. */
export function ratioTable(results) {
  const pairs = [
    ["this connector / the least that splices", "ours", "splice"],
    ["the usual loop / this connector", "plain", "ours"],
    ["the usual loop / this connector, one field dropped and one hashed", "plain", "ours, private"],
    ["`jq` / this connector", "jq", "ours"],
    ["this connector / the wire alone", "ours", "wire"],
    ["this connector, gzipped / not", "ours, gzip", "ours"],
  ];
  const rows = pairs
    .filter(([, above, below]) => results.has(above) && results.has(below))
    .map(([name, above, below]) => {
      const [a, b] = [results.get(above), results.get(below)];
      const inTurn = b.slice(0, a.length);
      const processor = a[0].cpu !== undefined && b[0].cpu !== undefined ? span(ratio(a, inTurn, cpu)) : "";
      return [name, span(ratio(a, inTurn, seconds)), processor];
    });
  return table(["ratio, median of pairs (least–most)", "time", "processor"], rows);
}

export function throughputTable(results, count, bytes) {
  const rows = [...results].map(([name, runs]) => {
    const time = median(runs.map(seconds));
    const wire = name.endsWith("gzip") ? bytes.gzipped : bytes.plain;
    return [
      NAMES[name],
      time.toFixed(2),
      Math.round(count / time / 1000).toLocaleString("en"),
      runs[0].cpu === undefined ? "" : median(runs.map(cpu)).toFixed(2),
      runs[0].peakMiB === undefined ? "" : Math.round(median(runs.map(peak))),
      Math.round(wire / 1e6),
      Math.round(wire / 1e6 / time),
    ];
  });
  const head = ["program", "seconds", "1,000 rows/s", "processor s", "peak MiB", "MB on the wire", "MB/s"];
  return `${count.toLocaleString("en")} rows:\n\n${table(head, rows)}`;
}

const PATHS = [
  ["default", "the default: Airbyte messages", ""],
  ["drop", "one field dropped (`drop_fields`)", 1.1],
  ["drop and hash", "one field dropped and one hashed", 1.4],
  ["tap", "the Singer tap, all fields selected", 1.12],
  ["tap, deselected", "the Singer tap, five fields deselected", 1.2],
  ["only", "five fields named (`only_fields`)", 1.2],
  ["suppress", "100,000 entries in `suppress_file`", 1.15],
  ["output", "files (`--output`)", ""],
  ["gzip", "files, `--compress gzip`", 1.5],
  ["quiet", "a quiet sync of 100 people", "0.27 s, 75 MiB"],
];

/** Each way beside the default one of the same Node, by processor time; its peak memory; seconds where it is short. */
export function pathsTable(byNode, count) {
  const rows = PATHS.flatMap(([name, words, goal]) => {
    const cells = [...byNode.values()].flatMap((results) => {
      const runs = results.get(name);
      if (runs === undefined) return [];
      const time = `${median(runs.map(seconds)).toFixed(2)} s`;
      const besides = runs.map(({ beside }) => beside);
      const pair = besides.includes(undefined) ? time : span(ratio(runs, besides, cpu));
      return [pair, Math.round(median(runs.map(peak)))];
    });
    return cells.length === 0 ? [] : [[words, goal, ...cells]];
  });
  const heads = [...byNode.keys()].flatMap((version) => [`Node ${version}`, "MiB"]);
  const words = `${count.toLocaleString("en")} rows in one window, median of pairs (least–most):`;
  return `${words}\n\n${table(["path, processor time by that of the default", "to reach", ...heads], rows)}`;
}

const START_GOALS = { spec: "1.15 times", check: "300 ms" };

export function startUpTable(results) {
  const bare = results.get("node -e 0");
  const rows = [...results].map(([name, runs]) => [
    `\`${name}\``,
    START_GOALS[name] ?? "",
    Math.round(median(runs.map(seconds)) * 1000),
    span(ratio(runs, bare, seconds)),
  ]);
  return table(["command", "to reach", "ms", "times `node -e 0`"], rows, 2);
}
