import { createHash, createHmac, hash } from "node:crypto";
import { ConfigError } from "../base/errors.ts";
import { toLatin1 } from "../base/text.ts";
import {
  type FieldFilter,
  type FieldRules,
  isDrop,
  joined,
  KEEP_ALL,
  type Rewrite,
  ruleFor,
} from "../catalog/field-rules.ts";
import { type StreamSettings, streamsOf } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { lineRewriter } from "./line-rewriter.ts";
import { isUndeclared, problemsOf, rulesOf, type Setting, toSetting, unknownProblems } from "./settings.ts";

/** Drops and hashes fields in rows, schemas, catalogs and messages. */
export class Privacy implements FieldFilter {
  readonly #origins: ReadonlyMap<string, string>;
  readonly #settings: readonly Setting[];
  readonly #hash: ((bytes: string) => string) | undefined;
  /** Names of settings that changed a row. */
  readonly #used = new Set<string>();
  /** Streams that have sent rows. */
  readonly #read = new Set<string>();

  /** @throws ConfigError that names each setting that the connector cannot obey */
  constructor(
    config: Pick<Config, "onlyFields" | "dropFields" | "hashFields" | "hashSalt"> &
      StreamSettings &
      Partial<Pick<Config, "origins">>,
  ) {
    const { onlyFields, dropFields, hashFields, hashSalt } = config;
    this.#origins = config.origins ?? new Map();
    this.#hash = hashSalt === null ? undefined : hasher(hashSalt);
    this.#settings = [
      ...onlyFields.map((name) => toSetting(name, "only_fields")),
      ...dropFields.map((name) => toSetting(name, "drop_fields")),
      ...hashFields.map((name) => toSetting(name, "hash_fields")),
    ];
    const streams = streamsOf(config);
    this.#refuse(this.#settings.map((setting) => [setting, problemsOf(setting, streams)]));
  }

  rules(stream: string): FieldRules {
    return rulesOf(this.#settings, stream);
  }

  replacementFor(stream: string, field: string): ((value: string) => string) | null {
    const rule = ruleFor(field, this.rules(stream));
    if (isDrop(rule)) return () => "***";
    const isHashed = rule !== "keep" && "kind" in rule;
    return isHashed ? (value) => this.#hash?.(toLatin1(value)) ?? "***" : null;
  }

  rewriter(
    stream: string,
    selection: FieldRules = KEEP_ALL,
    report: Parameters<FieldFilter["rewriter"]>[2] = () => undefined,
  ): Rewrite | null {
    const rules = joined(this.rules(stream), selection);
    if (rules === KEEP_ALL) return null;
    const rewrite = lineRewriter(rules, {
      hash: this.#hash,
      acted: ({ kind, setting, among = [] }, path) => {
        this.#used.add(setting);
        if (kind === "unlisted") report(path, among);
      },
    });
    return (line, names) => {
      this.#read.add(stream);
      return rewrite(line, names);
    };
  }

  /** @throws ConfigError for names that are in no schema and in no live row @param liveNames returns the names in live rows */
  async refuseUnknown(liveNames: () => Promise<ReadonlySet<string>>): Promise<void> {
    const undeclared = this.#settings.filter((setting) => setting.stream === null && isUndeclared(setting));
    if (undeclared.length === 0) return;
    const live = await liveNames();
    this.#refuse(undeclared.map((setting) => [setting, unknownProblems(setting, live)]));
  }

  unused(): readonly string[] {
    return this.#settings.flatMap((setting) => {
      const { list, name, stream } = setting;
      const isKnown = stream === null || list === "only_fields" || this.#used.has(name);
      if (isKnown || !this.#read.has(stream) || !isUndeclared(setting)) return [];
      return [`No row of "${stream}" had a field "${name}", which ${list} names: check its spelling`];
    });
  }

  #refuse(problems: readonly (readonly [setting: Setting, texts: readonly string[]])[]): void {
    const found = problems.filter(([, texts]) => texts.length > 0);
    if (found.length === 0) return;
    const [origin = "the config"] = found.flatMap(([{ list }]) => this.#origins.get(list) ?? []);
    throw new ConfigError(`Cannot use ${origin}: ${found.flatMap(([, texts]) => texts).join("; ")}`);
  }
}

/** The block size of SHA-256 in bytes. */
const BLOCK = 64;
/** Node's own HMAC digests longer values (bytes). */
const MAX_POOLED = 4096;

/** Returns HMAC-SHA-256 of latin1 bytes, in hex. Two hashes (RFC 2104) in reused memory take half the time for short values. */
function hasher(salt: string): (bytes: string) => string {
  const key = Buffer.from(salt, "utf8");
  const padded = Buffer.concat([key.length > BLOCK ? createHash("sha256").update(key).digest() : key], BLOCK);
  const inner = Buffer.concat([padded.map((byte) => byte ^ 0x36)], BLOCK + MAX_POOLED);
  const outer = Buffer.concat([padded.map((byte) => byte ^ 0x5c)], BLOCK + 32);
  /** Reused views of `inner`, by the length of the value. To make a view takes a tenth of the time of a digest. */
  const beginnings: Buffer[] = [];
  return (bytes) => {
    const { length } = bytes;
    if (length > MAX_POOLED) return createHmac("sha256", key).update(bytes, "latin1").digest("hex");
    inner.write(bytes, BLOCK, "latin1");
    const message = beginnings[length] ?? inner.subarray(0, BLOCK + length);
    beginnings[length] = message;
    outer.write(hash("sha256", message, "binary"), BLOCK, "latin1");
    return hash("sha256", outer, "hex");
  };
}
