import { type FieldRules, lineRewriter } from "../catalog/field-rules.ts";
import type { Privacy } from "../catalog/privacy.ts";
import { catalogConflicts } from "../catalog/privacy-schema.ts";
import { type JsonSchema, loadSchema, propertiesOf } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import { STREAMS, type StreamSpec } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { withoutNuls } from "../protocol/prune.ts";
import type { Event, Lines, RawLine } from "../streams/event.ts";

/** Drops and hashes in a stream's events what the config says, before anything else sees their rows. */
export async function* withPrivacy(
  events: AsyncIterable<Event>,
  stream: string,
  privacy: Privacy,
): AsyncGenerator<Event> {
  const rewrite = privacy.rewriter(stream);
  for await (const event of events) {
    if (rewrite !== null && event.kind === "records") {
      yield { ...event, lines: event.lines.map((line) => rewrite(line) as RawLine) };
    } else if (rewrite !== null && event.kind === "fields") {
      const { properties } = privacy.schema(stream, { properties: event.added });
      if (Object.keys(properties ?? {}).length > 0)
        yield { ...event, added: properties as typeof event.added };
    } else yield event;
  }
}

/**
 * Warns of a catalog that names dropped fields, and throws ConfigError for one that types hashed fields so that the
 * destination could not take their digests.
 */
export function* catalogWarnings(
  stream: string,
  schema: JsonSchema | null,
  privacy: Privacy,
): Generator<Event> {
  const rules = privacy.rules(stream);
  if (schema === null || rules === null) return;
  const { mistyped, dropped } = catalogConflicts(schema, rules);
  if (mistyped.length > 0) {
    throw new ConfigError(
      `Cannot read the stream "${stream}": the catalog types ${namesOf(mistyped)} as it was before hash_fields named it, ` +
        `and a digest is a text. ${REFRESH}`,
    );
  }
  if (dropped.length > 0) {
    yield warning(
      `The catalog of "${stream}" names ${namesOf(dropped)}, which drop_fields drops. ${REFRESH}`,
    );
  }
}

/** Field names in one warning. */
const MOST_NAMES = 1000;

/**
 * Lets out of a stream's events only what the catalog names, without the NULs that SQL targets cannot store, and warns
 * at the stream's end of what it withheld or replaced. Throws ConfigError for rows of a stream whose fields the catalog
 * cannot know.
 */
export async function* forSinger(
  events: AsyncIterable<Event>,
  { stream, rules, sampled }: Selection,
): AsyncGenerator<Event> {
  const cleaner = new Cleaner(rules);
  for await (const event of events) {
    // A catalog is the whole list of fields: it is not added to.
    if (event.kind === "fields" && rules !== null) continue;
    if (event.kind === "records") {
      if (sampled === false && event.lines.length > 0) throw unsampled(stream);
      yield { ...event, lines: cleaner.clean(event.lines) };
      continue;
    }
    if (event.kind === "close") yield* cleaner.warnings(stream);
    yield event;
  }
}

class Cleaner {
  readonly #rewrite: (line: string) => string;
  readonly #withheld = new Set<string>();
  #nuls = 0;

  constructor(rules: FieldRules | null) {
    this.#rewrite =
      rules === null
        ? (line) => line
        : lineRewriter(rules, {
            acted: (action, path) => {
              if (action.kind === "withhold" && this.#withheld.size < MOST_NAMES)
                this.#withheld.add(path.join("."));
            },
          });
  }

  clean(lines: Lines): Lines {
    const replaced = (): void => {
      this.#nuls += 1;
    };
    return lines.map((line) => withoutNuls(this.#rewrite(line), replaced) as RawLine);
  }

  *warnings(stream: string): Generator<Event> {
    yield* withheldWarnings(stream, [...this.#withheld]);
    if (this.#nuls > 0) {
      yield warning(
        `The rows of "${stream}" hold NUL characters, which SQL targets cannot store: ${this.#nuls} replaced by U+FFFD`,
      );
    }
  }
}

const warning = (text: string): Event => ({ kind: "log", level: "warn", text });

const REFRESH =
  "Discover again and use the new catalog: refresh the source's schema in Airbyte, run with --refresh-catalog in Meltano";

const NAME_THEM =
  "Discovery does not find them, because the fields of this stream are fixed. Add them to the catalog by hand: in Meltano " +
  'with the extra "schema"';

function* withheldWarnings(stream: string, names: readonly string[]): Generator<Event> {
  const isFound = discoverable(stream);
  const [found, others] = [names.filter(isFound), names.filter((name) => !isFound(name))];
  if (found.length > 0) yield warning(withheldText(stream, found, REFRESH));
  if (others.length > 0) yield warning(withheldText(stream, others, NAME_THEM));
}

/** Tells whether a new discovery names a field of a stream. */
function discoverable(stream: string): (name: string) => boolean {
  const spec: StreamSpec | undefined = STREAMS.find(({ name }) => name === stream);
  if (spec === undefined || spec.sampled) return () => true;
  const known = propertiesOf(loadSchema(spec.schemaFile));
  return (name) => Object.hasOwn(known, name.split(".", 1)[0] ?? "");
}

const withheldText = (stream: string, names: readonly string[], remedy: string): string =>
  `The rows of "${stream}" have fields that the catalog does not name, which were withheld: ${namesOf(names)}. ${remedy}`;

const namesOf = (names: readonly string[]): string => names.map((name) => JSON.stringify(name)).join(", ");

const unsampled = (stream: string): ConfigError =>
  new ConfigError(
    `Cannot read the stream "${stream}": when the catalog was made the stream had no rows, or was not on the key's plan, ` +
      `so that the catalog does not name its fields. ${REFRESH}`,
  );
