import type { Result } from "./run-scenario.ts";

export const PAGE = new URL("fault-lab.md", import.meta.url);

const INTRODUCTION = `# The fault lab

What the connector does under each fault of the bundled sandbox, for whoever wants to know how far to trust it.
\`npm run faultlab\` plays every scenario on this machine in a few minutes and fails if a promise of
[reliability.md](../../docs/reliability.md) is broken; \`npm run faultlab -- TEXT\` plays those whose name contains the text;
\`npm run faultlab -- --write\` makes this page.

Each scenario is a first sync with the fault, then up to three syncs without it, on real sockets. *What happened* is
said of the first one. *Served* and *delivered* count rows after the last one, *repeated* the records that one run
wrote twice, *requests* those of the first sync. \`contact-intelligence-sandbox --help faults\` explains the faults.
A scenario that fails is no loss: its error says why, the state stays behind the last proven row, and the next sync
brings the rest. Scenarios in which rows can stay away are named in reliability.md. With \`dates=unreadable\` the same person
counts as another row once the date can be read.
`;

const HEADS = ["fault", "what happened", "served", "delivered", "repeated", "requests"];

/** A result as a row of the table. */
export function toRow({ name, happened, served, delivered, repeated, requests }: Result): string {
  return `| ${[escaped(name), happened, served, delivered, repeated, requests].join(" | ")} |`;
}

const escaped = (name: string): string => name.replaceAll("|", "\\|");

/** Rows as a Markdown table. */
export function toTable(rows: readonly string[]): string {
  const head = [HEADS, HEADS.map((_, nth) => (nth < 2 ? "---" : "---:"))];
  return [...head.map((cells) => `| ${cells.join(" | ")} |`), ...rows].join("\n");
}

/** The page with these rows. */
export const toPage = (rows: readonly string[]): string => `${INTRODUCTION}\n${toTable(rows)}\n`;

/** The scenarios that a page shows, in its order. */
export const tableNames = (page: string): readonly string[] =>
  [...page.matchAll(/^\| (.+?) \| /gm)].map(([, name = ""]) => name).slice(2);
