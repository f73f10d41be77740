// Runs the demo and draws what it says, as it says it, into docs/demo.svg: `node scripts/record-demo.js`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const [LINE, LEFT, TOP] = [19, 18, 58];
/** Characters of a line, and how wide one is at this size of letters. */
const [COLUMNS, CHARACTER] = [118, 7.83];
/** Between two lines at the least, and where the demo is silent at the most (seconds): nobody wants to wait for a machine. */
const [SHORTEST, LONGEST] = [0.05, 0.9];

const root = fileURLToPath(new URL("..", import.meta.url));
const child = spawn(process.execPath, [join(root, "dist/sandbox/contact-intelligence-sandbox.js"), "demo"], {
  stdio: ["ignore", "pipe", "inherit"],
  env: { ...process.env, NO_COLOR: "1" },
});

const ended = once(child, "close");

/** Every line, and when it came (seconds since the line before). */
const lines = [];
let last = performance.now();
for await (const text of createInterface({ input: child.stdout })) {
  const now = performance.now();
  lines.push({ text, pause: (now - last) / 1000 });
  last = now;
}
const [code] = await ended;
if (code !== 0) throw new Error(`Cannot record the demo: it ended with ${code}`);

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const kindOf = (text) =>
  text.trimStart().startsWith("$ ") ? "command" : text.startsWith(" ") ? "output" : "title";

let at = 0.4;
const rows = lines.map(({ text, pause }, nth) => {
  at += Math.min(LONGEST, Math.max(SHORTEST, pause));
  const cut = text.length > COLUMNS ? `${text.slice(0, COLUMNS - 2)} …` : text;
  const place = `x="${LEFT}" y="${TOP + nth * LINE}" style="animation-delay:${at.toFixed(2)}s"`;
  return `<text class="${kindOf(text)}" ${place} xml:space="preserve">${escaped(cut)}</text>`;
});
const width = Math.round(2 * LEFT + COLUMNS * CHARACTER);
const height = TOP + lines.length * LINE + 8;
const dots = ["#ff5f56", "#ffbd2e", "#27c93f"].map(
  (fill, nth) => `<circle cx="${LEFT + 6 + nth * 20}" cy="20" r="6" fill="${fill}"/>`,
);

writeFileSync(
  join(root, "docs/demo.svg"),
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13">
<title>The demo: two syncs against the sandbox</title>
<style>
text{fill:#c9d1d9;animation:show .01s linear backwards}
.command{fill:#7ee787;font-weight:bold}
.title{fill:#79c0ff}
@keyframes show{from{opacity:0}to{opacity:1}}
</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${dots.join("\n")}
${rows.join("\n")}
</svg>
`,
);
