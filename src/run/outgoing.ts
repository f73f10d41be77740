import { type Rewrite, schemaUnder } from "../catalog/field-rules.ts";
import type { Privacy } from "../catalog/privacy.ts";
import { catalogConflicts } from "../catalog/privacy-schema.ts";
import { type JsonSchema, loadSchema, propertiesOf } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import { STREAMS, type StreamSpec } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { withoutNuls } from "../protocol/prune.ts";
import type { Event, RawLine, RowFacts } from "../streams/event.ts";
import { Drift } from "./drift.ts";

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
      `Cannot read the stream "${stream}": the catalog types ${fieldNamesOf(mistyped)} as it was before hash_fields named it, ` +
        `and a digest is a text. ${REFRESH}`,
    );
  }
  if (dropped.length > 0) {
    yield warningOf(
      `The catalog of "${stream}" names ${fieldNamesOf(dropped)}, which drop_fields drops. ${REFRESH}`,
    );
  }
}

/** Field names in one warning. */
const MOST_NAMED = 1000;

/**
 * What becomes of a stream's events before anything else sees them. Rows leave as the config and a Singer catalog let
 * them, and what they taught becomes events: new fields before the batch that has them, warnings before the end.
 */
export class Outgoing {
  readonly #stream: string;
  readonly #privacy: Privacy;
  readonly #selection: Selection | undefined;
  /** Null: lines leave as they are. */
  readonly #rewrite: Rewrite | null;
  readonly #drift = new Drift();
  readonly #withheld = new Set<string>();
  #nuls = 0;

  /** @param selection what a Singer catalog lets out; undefined: the platform speaks another language */
  constructor(stream: string, privacy: Privacy, selection: Selection | undefined) {
    this.#stream = stream;
    this.#privacy = privacy;
    this.#selection = selection;
    const rewrite = privacy.rewriter(stream, selection?.rules, (path) => {
      if (this.#withheld.size < MOST_NAMED) this.#withheld.add(path.join("."));
    });
    const replaced = (): void => {
      this.#nuls += 1;
    };
    this.#rewrite =
      selection === undefined
        ? rewrite
        : (line) => withoutNuls(rewrite === null ? line : rewrite(line), replaced);
  }

  /** Throws ConfigError for rows of a stream whose fields a Singer catalog could not know. */
  *events(event: Event): Generator<Event> {
    if (event.kind === "records") {
      yield* this.#newFields(event.facts);
      if (event.lines.length === 0) return;
      if (this.#selection?.sampled === false) throw unsampled(this.#stream);
      const rewrite = this.#rewrite;
      yield rewrite === null
        ? event
        : { ...event, lines: event.lines.map((line) => rewrite(line) as RawLine) };
      return;
    }
    if (event.kind === "close") yield* this.#warnings();
    yield event;
  }

  /** A Singer catalog is the complete list of fields: nothing is added to it. */
  *#newFields(facts: RowFacts | undefined): Generator<Event> {
    const properties = facts && this.#drift.add(facts);
    if (properties === undefined || (this.#selection?.rules ?? null) !== null) return;
    const { properties: added = {} } = schemaUnder(
      this.#privacy.rules(this.#stream),
      { properties },
      "leaving",
    );
    if (Object.keys(added).length > 0) yield { kind: "fields", stream: this.#stream, added };
  }

  *#warnings(): Generator<Event> {
    const report = this.#drift.report(this.#stream);
    if (report !== undefined) yield warningOf(report);
    yield* withheldWarnings(this.#stream, [...this.#withheld]);
    if (this.#nuls > 0) {
      yield warningOf(
        `The rows of "${this.#stream}" hold NUL characters, which SQL targets cannot store: ${this.#nuls} replaced by U+FFFD`,
      );
    }
  }
}

const warningOf = (text: string): Event => ({ kind: "log", level: "warn", text });

const REFRESH =
  "Discover again and use the new catalog: refresh the source's schema in Airbyte, run with --refresh-catalog in Meltano";

const NAME_THEM =
  "Discovery does not find them, because the fields of this stream are fixed. Add them to the catalog by hand: in Meltano " +
  'with the extra "schema"';

/** A field that discovery does not find has another remedy. */
function* withheldWarnings(stream: string, names: readonly string[]): Generator<Event> {
  for (const remedy of [REFRESH, NAME_THEM]) {
    const some = names.filter((name) => isDiscoverable(stream, name) === (remedy === REFRESH));
    if (some.length === 0) continue;
    const what = `The rows of "${stream}" have fields that the catalog does not name, which were withheld`;
    yield warningOf(`${what}: ${fieldNamesOf(some)}. ${remedy}`);
  }
}

function isDiscoverable(stream: string, name: string): boolean {
  const spec: StreamSpec | undefined = STREAMS.find((one) => one.name === stream);
  if (spec === undefined || spec.sampled) return true;
  return Object.hasOwn(propertiesOf(loadSchema(spec.name)), name.split(".", 1)[0] ?? "");
}

const fieldNamesOf = (names: readonly string[]): string =>
  names.map((name) => JSON.stringify(name)).join(", ");

const unsampled = (stream: string): ConfigError =>
  new ConfigError(
    `Cannot read the stream "${stream}": when the catalog was made the stream had no rows, or was not on the key's plan, ` +
      `so that the catalog does not name its fields. ${REFRESH}`,
  );
