import { CAPABILITIES, type Program, type Setting, settingsOf } from "./about.ts";
import { type Spec, typeOf } from "./spec.ts";

/**
 * The tap as a plugin that `meltano add --from-ref` takes, in YAML. It has no `pip_url`: there is nothing for Meltano to
 * install. Settings of objects have no value here, because a default in one may bring to life what costs money.
 */
export function meltanoPlugin({ name, description }: Program, spec: Spec): string {
  const required = settingsOf(spec).filter((setting) => setting.required);
  return [
    "# Made by: tap-contact-intelligence --about --format meltano",
    `name: ${name}`,
    `namespace: ${name.replaceAll("-", "_")}`,
    "variant: source-contact-intelligence",
    "label: Contact Intelligence",
    `description: ${text(description)}`,
    `docs: ${text(spec.documentationUrl)}`,
    `repo: ${text(spec.documentationUrl)}`,
    "# One file: a name on the PATH, an absolute path, or a path below the project such as node_modules/.bin/…",
    `executable: ${name}`,
    "capabilities:",
    ...CAPABILITIES.map((capability) => `- ${capability}`),
    "settings_group_validation:",
    `- [${required.map((setting) => setting.name).join(", ")}]`,
    "settings:",
    ...settingsOf(spec).flatMap(settingLines),
    "",
  ].join("\n");
}

function settingLines(setting: Setting): string[] {
  const { name, path, property } = setting;
  const value = path.length === 1 ? property.default : undefined;
  const options = (property.enum ?? []).flatMap((choice) => [
    `  - label: ${text(choice)}`,
    `    value: ${text(choice)}`,
  ]);
  return [
    `- name: ${name}`,
    `  label: ${text(property.title ?? name)}`,
    `  description: ${text(property.description ?? "")}`,
    `  kind: ${kindOf(setting)}`,
    ...(property.airbyte_secret === true ? ["  sensitive: true"] : []),
    ...(options.length > 0 ? ["  options:", ...options] : []),
    ...(value === undefined ? [] : [`  value: ${text(value)}`]),
  ];
}

function kindOf({ property }: Setting): string {
  if (property.format === "date") return "date_iso8601";
  return property.enum === undefined ? typeOf(property) : "options";
}

/** JSON is YAML. */
const text = (value: unknown): string => JSON.stringify(value);
