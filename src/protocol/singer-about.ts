import {
  type Located,
  type Spec,
  type SpecProperty,
  settingsIn,
  typeOf,
  variableOf,
} from "../config/spec.ts";

export type Program = {
  readonly name: string;
  readonly description: string;
  readonly version: string;
};

/** In Meltano's closed list of words. */
export const CAPABILITIES = [
  "about",
  "activate-version",
  "catalog",
  "discover",
  "state",
  "structured-logging",
  "test",
] as const;

/** The description for programs that list taps. */
export function aboutJson(program: Program, spec: Spec): object {
  return {
    ...program,
    sdk_version: null,
    supported_python_versions: null,
    capabilities: CAPABILITIES,
    settings: toSettings(spec.connectionSpecification),
  };
}

const FORM_ONLY: ReadonlySet<string> = new Set([
  "airbyte_secret",
  "airbyte_hidden",
  "order",
  "group",
  "groups",
]);

/** The config's schema without what only Airbyte's forms know. */
function toSettings(property: SpecProperty & Readonly<Record<string, unknown>>): Record<string, unknown> {
  const rest = Object.entries(property).filter(([name]) => !FORM_ONLY.has(name));
  const { properties, items } = property;
  const inner = Object.entries(properties ?? {}).map(([name, one]) => [name, toSettings(one)]);
  return {
    ...Object.fromEntries(rest),
    ...(property.airbyte_secret === true && { secret: true, writeOnly: true }),
    ...(items !== undefined && { items: toSettings(items) }),
    ...(properties !== undefined && { properties: Object.fromEntries(inner) }),
  };
}

/** One setting, `a.b` if it is nested. */
export type DescribedSetting = Located & { readonly name: string; readonly required: boolean };

/** Every property with a value of its own. */
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
  const remarks = [
    typeOf(property),
    required ? "required" : "",
    property.airbyte_secret === true ? "secret" : "",
    property.default === undefined ? "" : `default ${JSON.stringify(property.default)}`,
  ];
  return remarks.filter((remark) => remark !== "").join(", ");
}

const cell = (text: string): string => text.replaceAll("|", "\\|");
