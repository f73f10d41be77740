// Writes the tables of docs/troubleshooting.md: everything that the connector says when the service or the network fails,
// from the table that it acts by. `node scripts/docs.js --check` only compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { importSource } from "./import-source.js";

const { FAILURES, NETWORK, PUBLIC_API, STATUSES, worded } = await importSource("src/service/error-table.ts");
const page = fileURLToPath(new URL("../docs/troubleshooting.md", import.meta.url));

const ACTS = {
  ConfigError: "you",
  NotFoundError: "you",
  TransientError: "time",
  BodyError: "time",
  DataError: "owner",
};

/** A row for each remedy, with all names that it helps. */
function table(failures) {
  const rows = new Map();
  for (const [name, { error, wrong, remedy }] of failures) {
    const [who, what] = [ACTS[error.name], worded(remedy, PUBLIC_API)];
    if (who === undefined)
      throw new Error(`Cannot write the table: ACTS does not say who acts on a ${error.name}`);
    const { names, wrongs } = rows.get(who + what) ?? { names: [], wrongs: new Set() };
    rows.set(who + what, { who, what, names: [...names, `\`${name}\``], wrongs: wrongs.add(wrong) });
  }
  const cells = ({ names, who, wrongs, what }) => [names.join(", "), who, [...wrongs].join("; "), what];
  const lines = [...rows.values()].map((row) => `| ${cells(row).join(" | ")} |`);
  return ["| code | who acts | what is wrong | what to do |", "| --- | --- | --- | --- |", ...lines].join(
    "\n",
  );
}

/** Replaces what is between the two comments that name a part of the page. */
const replaced = (text, name, part) =>
  text.replace(
    new RegExp(`(?<=<!-- ${name}: [^\n]*-->\n\n).*?(?=\n\n<!-- end of ${name} -->)`, "s"),
    () => part,
  );

const today = readFileSync(page, "utf8");
const codes = replaced(today, "codes", table([...Object.entries(FAILURES), ...STATUSES]));
const text = replaced(codes, "connection", table(NETWORK));

if (process.argv.includes("--check")) {
  if (today !== text) {
    console.error("docs/troubleshooting.md is not what the error table says: run npm run docs");
    process.exitCode = 1;
  }
} else writeFileSync(page, text);
