type YamlValue = string | number | boolean | readonly YamlValue[] | YamlObject;
export type YamlObject = { readonly [key: string]: YamlValue };

/** Block YAML with sorted keys and sequences that are not indented, which is what Meltano's Hub lints for. */
export function toYaml(object: YamlObject): string {
  return `${linesOf(object).join("\n")}\n`;
}

function linesOf(object: YamlObject): string[] {
  return Object.keys(object)
    .sort()
    .flatMap((key) => propertyLines(key, object[key] ?? ""));
}

function propertyLines(key: string, value: YamlValue): string[] {
  if (Array.isArray(value)) return [`${key}:`, ...value.flatMap(itemLines)];
  if (isObject(value)) return [`${key}:`, ...linesOf(value).map((line) => `  ${line}`)];
  return [`${key}: ${scalar(value)}`];
}

function itemLines(value: YamlValue): string[] {
  const lines = Array.isArray(value)
    ? value.flatMap(itemLines)
    : isObject(value)
      ? linesOf(value)
      : [scalar(value)];
  return lines.map((line, index) => `${index === 0 ? "- " : "  "}${line}`);
}

const isObject = (value: YamlValue): value is YamlObject =>
  typeof value === "object" && !Array.isArray(value);

/** Words that other readers of YAML take for a boolean or null are quoted, and so is all that is more than a word. */
function scalar(value: YamlValue): string {
  const isWord = typeof value === "string" && /^[a-z][\w.-]*$/.test(value) && !RESERVED.has(value);
  return isWord ? value : JSON.stringify(value);
}

const RESERVED = new Set(["true", "false", "yes", "no", "on", "off", "null", "y", "n"]);
