import { isObject } from "../base/json.ts";
import { joined } from "../base/text.ts";
import { type Located, type Spec, settingsIn, typeOf, variableOf } from "../config/spec.ts";

export type Program = {
  readonly name: string;
  readonly description: string;
  readonly version: string;
};

/** Meltano accepts only the words of its list. */
export const CAPABILITIES = [
  "about",
  "activate-version",
  "catalog",
  "discover",
  "state",
  "structured-logging",
  "test",
] as const;

/** The description for programs that list taps. It marks secrets also by the keywords of the Singer SDK. */
export function aboutJson(program: Program, { connectionSpecification }: Spec): string {
  const unknown = { sdk_version: null, supported_python_versions: null };
  const about = { ...program, ...unknown, capabilities: CAPABILITIES, settings: connectionSpecification };
  const marked = (_name: string, value: unknown): unknown =>
    isObject(value) && value["airbyte_secret"] === true ? { ...value, secret: true, writeOnly: true } : value;
  return JSON.stringify(about, marked, 2);
}

/** One setting; a nested setting has the name `a.b`. */
export type DescribedSetting = Located & { readonly name: string; readonly required: boolean };

/** Every property except objects. */
export function describedSettings(spec: Spec): readonly DescribedSetting[] {
  const { required } = spec.connectionSpecification;
  const names = new Set(Array.isArray(required) ? required : []);
  return [...settingsIn(spec.connectionSpecification)]
    .filter(({ property }) => typeOf(property) !== "object")
    .map(({ path, property }) => {
      const name = path.join(".");
      return { name, path, property, required: names.has(name) };
    });
}

export function aboutText({ name, description, version }: Program, spec: Spec): string {
  const settings = describedSettings(spec).map(
    (setting) => `  ${setting.name} (${remarksOf(setting)})\n      ${setting.property.description ?? ""}`,
  );
  return `${name} ${version}\n${description}\n\nCapabilities: ${CAPABILITIES.join(", ")}\n\nSettings:\n${settings.join("\n")}`;
}

export function aboutMarkdown({ name, description, version }: Program, spec: Spec): string {
  const rows = describedSettings(spec).map(
    (setting) =>
      `| \`${setting.name}\` | ${remarksOf(setting)} | ${cell(setting.property.description ?? "")} | \`${variableOf(setting.path)}\` |`,
  );
  return [
    `# ${name}`,
    `${description}. Version ${version}.`,
    "## Capabilities",
    CAPABILITIES.map((capability) => `- \`${capability}\``).join("\n"),
    "## Settings",
    ["| setting | type | meaning | environment |", "| --- | --- | --- | --- |", ...rows].join("\n"),
  ].join("\n\n");
}

function remarksOf({ property, required }: DescribedSetting): string {
  return joined([
    typeOf(property),
    required && "required",
    property.airbyte_secret === true && "secret",
    property.default !== undefined && `default ${JSON.stringify(property.default)}`,
  ]);
}

const cell = (text: string): string => text.replaceAll("|", "\\|");
