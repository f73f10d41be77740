// Writes docs/settings.md, the tables of docs/troubleshooting.md, and meltano/, from their sources; `--check` only compares.
import { readFileSync } from "node:fs";
import { importSource, writeOrCheck } from "./import-source.js";

const { FAILURES, NETWORK, PUBLIC_API, STATUSES, worded } = await importSource("src/service/error-table.ts");
const { loadSpec, typeOf, variableOf } = await importSource("src/config/spec.ts");
const { describedSettings } = await importSource("src/protocol/singer-about.ts");
const { loadProgram, SHIPPED } = await importSource("src/commands/about.ts");
const { meltanoHubPlugin, meltanoPlugin } = await importSource("scripts/meltano-plugin.ts");

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
  return markdown(["code", "who acts", "what is wrong", "what to do"], [...rows.values()].map(cells));
}

const markdown = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

const TYPES = { string: "text", integer: "number", boolean: "true/false", array: "list" };

/** A heading and a table for each group of the form. */
function settings() {
  const { groups, properties } = loadSpec().connectionSpecification;
  const parts = groups.map(({ id, title }) => {
    const shown = describedSettings(loadSpec()).filter(({ path: [first] }) => properties[first].group === id);
    const head = ["setting", "type", "default", "meaning"];
    return [`## ${title}`, markdown(head, shown.map(cellsOf))];
  });
  return parts.flat().join("\n\n");
}

function cellsOf({ name, path, property, required }) {
  const type = property.enum?.join(", ") ?? TYPES[typeOf(property)];
  const usual = required ? "**required**" : property.default === undefined ? "" : `\`${property.default}\``;
  return [`\`${name}\`<br>\`${variableOf(path)}\``, type, usual, property.description.replaceAll("|", "\\|")];
}

/** Replaces the text between the two comments that name a part of the page. */
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
  const today = readFileSync(new URL(`../${page}`, import.meta.url), "utf8");
  writeOrCheck(page, Object.entries(parts).reduce(replaced, today), "npm run docs");
}
const made = { meltano: meltanoPlugin, "meltano-hub": meltanoHubPlugin };
for (const [format, path] of Object.entries(SHIPPED))
  writeOrCheck(path, made[format](loadProgram(), loadSpec()), "npm run docs");
