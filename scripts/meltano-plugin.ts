import { stringify } from "yaml";
import { isDayProperty, type Spec, typeOf } from "../src/config/spec.ts";
import {
  CAPABILITIES,
  type DescribedSetting,
  describedSettings,
  type Program,
} from "../src/protocol/singer-about.ts";

/**
 * The tap as a plugin that `meltano add --from-ref` takes, in YAML. It has no `pip_url`, so Meltano installs nothing:
 * `executable` is a name on the PATH, an absolute path, or a path below the project such as `node_modules/.bin/…`.
 */
export function meltanoPlugin(program: Program, spec: Spec): string {
  return `# Made by: ${program.name} --about --format meltano\n${toYaml(definitionOf(program, spec))}`;
}

/** The same plugin as Meltano's Hub lists it, by its schema and its lint. Meltano installs the wheel, which contains Node. */
export function meltanoHubPlugin(program: Program, spec: Spec): string {
  return toYaml({
    ...definitionOf(program, spec),
    keywords: ["api"],
    maintenance_status: "active",
    pip_url: PACKAGE,
    supported_python_versions: ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"],
  });
}

/** The name of the package, and of its wheel. */
const PACKAGE = "source-contact-intelligence";

function definitionOf({ name, description }: Program, spec: Spec): object {
  const settings = describedSettings(spec);
  const { documentationUrl = "https://source-contact-intelligence.invalid/blob/main/docs/airbyte.md" } = spec;
  const [repo = ""] = documentationUrl.split("/blob/");
  return {
    name,
    namespace: name.replaceAll("-", "_"),
    variant: PACKAGE,
    label: "Contact Intelligence",
    description,
    docs: documentationUrl.replace("/docs/airbyte.md", "/docs/meltano.md"),
    repo,
    executable: name,
    capabilities: CAPABILITIES,
    settings_group_validation: [
      settings.filter((setting) => setting.required).map((setting) => setting.name),
    ],
    settings: settings.map(definitionOfSetting),
  };
}

/** Settings within objects have no value here, because a default in one may switch on what costs money. */
function definitionOfSetting(setting: DescribedSetting): object {
  const { name, path, property } = setting;
  const { title = name, description = "", default: value, airbyte_secret } = property;
  const options = property.enum?.map((choice) => ({ label: String(choice), value: String(choice) }));
  return {
    name,
    label: title,
    description,
    kind: kindOf(setting),
    ...(airbyte_secret === true ? { sensitive: true } : {}),
    ...(options === undefined ? {} : { options }),
    ...(value === undefined || path.length > 1 ? {} : { value }),
  };
}

function kindOf({ property }: DescribedSetting): string {
  if (isDayProperty(property)) return "date_iso8601";
  return property.enum === undefined ? typeOf(property) : "options";
}

/** Sequences are not indented and keys are sorted, for which Meltano's Hub lints. Meltano reads YAML 1.1. */
const toYaml = (object: object): string =>
  stringify(object, { version: "1.1", sortMapEntries: true, indentSeq: false, lineWidth: 0 });
