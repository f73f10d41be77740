// Writes the tables of docs/troubleshooting.md from the table of errors, and those of docs/settings.md from spec.json.
// `node scripts/docs.js --check` only compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { importSource } from "./import-source.js";

const { FAILURES, NETWORK, PUBLIC_API, STATUSES, worded } = await importSource("src/service/error-table.ts");
const { loadSpec, typeOf, variableOf } = await importSource("src/config/spec.ts");
const { describedSettings } = await importSource("src/protocol/singer-about.ts");

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

const TYPES = { string: "text", integer: "number", boolean: "true, false", array: "list" };

/** A heading and a table for each group of the form. */
function settings() {
  const { groups, properties } = loadSpec().connectionSpecification;
  const parts = groups.map(({ id, title }) => {
    const rows = describedSettings(loadSpec())
      .filter(({ path: [first] }) => properties[first].group === id)
      .map((setting) => `| ${cellsOf(setting).join(" | ")} |`);
    return [
      `## ${title}`,
      ["| setting, variable | type | default | what it does |", "| --- | --- | --- | --- |", ...rows].join(
        "\n",
      ),
    ];
  });
  return parts.flat().join("\n\n");
}

function cellsOf({ name, path, property, required }) {
  const type = property.enum?.join(", ") ?? TYPES[typeOf(property)];
  const usual = required ? "**required**" : property.default === undefined ? "" : `\`${property.default}\``;
  return [`\`${name}\`<br>\`${variableOf(path)}\``, type, usual, property.description.replaceAll("|", "\\|")];
}

/** Replaces what is between the two comments that name a part of the page. */
const replaced = (text, [name, part]) =>
  text.replace(
    new RegExp(`(?<=<!-- ${name}: [^\n]*-->\n\n).*?(?=\n\n<!-- end of ${name} -->)`, "s"),
    () => part,
  );

/** The names of a connection's errors say what is wrong. */
const withoutWrong = (text) => text.replace(/^((?:[^|]*\|){3})[^|]*\|/gm, "$1");

const PAGES = {
  "docs/troubleshooting.md": {
    codes: table([...Object.entries(FAILURES), ...STATUSES]),
    connection: withoutWrong(table(NETWORK)),
  },
  "docs/settings.md": { settings: settings() },
};

for (const [page, parts] of Object.entries(PAGES)) {
  const file = fileURLToPath(new URL(`../${page}`, import.meta.url));
  const today = readFileSync(file, "utf8");
  const text = Object.entries(parts).reduce(replaced, today);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (today !== text) {
    console.error(`${page} is not what its source says: run npm run docs`);
    process.exitCode = 1;
  }
}
