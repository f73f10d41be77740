// Puts tables into docs/benchmarks.md, between the markers that name them, and draws the chart.
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";

const DOCS = new URL("../docs/", import.meta.url);

export function writeReport(report) {
  const file = new URL("benchmarks.md", DOCS);
  let text = readFileSync(file, "utf8");
  for (const [name, tables] of Object.entries(report)) {
    text = replaced(text, name, [...tables.map((table) => table.text), taken()].join("\n\n"));
    const bars = tables.find((table) => table.bars !== undefined)?.bars;
    if (bars !== undefined) writeFileSync(new URL("benchmarks.svg", DOCS), chart(bars));
  }
  writeFileSync(file, text);
}

function replaced(text, name, content) {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [before, rest] = text.split(open);
  if (rest === undefined)
    throw new Error(`Cannot write the report: benchmarks.md has no place for "${name}"`);
  return `${before}${open}\n\n${content}\n\n${close}${rest.split(close)[1]}`;
}

function taken() {
  const memory = Math.round(totalmem() / 2 ** 30);
  const machine = `${cpus().length} × ${cpus()[0].model.trim()}, ${memory} GiB, Node ${process.version}, ${process.platform}`;
  return `Taken on ${new Date().toISOString().slice(0, 10)}: ${machine}.`;
}

const ROW = 34;
const LEFT = 330;
const WIDTH = 800;

function chart(bars) {
  const sorted = bars.toSorted((a, b) => b.value - a.value);
  const most = sorted[0].value;
  const lines = sorted.map(({ name, value, isOurs }, nth) => {
    const y = 46 + nth * ROW;
    const width = ((WIDTH - LEFT - 110) * value) / most;
    const rows = `${Math.round(value / 1000).toLocaleString("en")},000`;
    return [
      `<text x="${LEFT - 10}" y="${y + 16}" text-anchor="end"${isOurs ? ' font-weight="bold"' : ""}>${name}</text>`,
      `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="22" rx="3" fill="${isOurs ? "#1f6feb" : "#8b949e"}"/>`,
      `<text x="${(LEFT + width + 8).toFixed(1)}" y="${y + 16}">${rows}</text>`,
    ].join("\n");
  });
  const height = 60 + sorted.length * ROW;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="14" fill="#57606a">
<title>Rows a second by program</title>
<text x="${LEFT}" y="26" font-weight="bold">rows a second, whole process</text>
${lines.join("\n")}
</svg>
`;
}
