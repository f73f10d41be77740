import { readFileSync } from "node:fs";
import { Ajv } from "ajv";

export type Json = Readonly<Record<string, unknown>>;

/** A stream as the protocol names it. */
type Descriptor = { readonly name: string; readonly namespace?: string | null };

type Trace = {
  readonly type: string;
  readonly emitted_at: number;
  readonly error?: Readonly<Record<"message" | "internal_message" | "failure_type", string>> & {
    readonly stack_trace?: string;
    readonly stream_descriptor?: Descriptor;
  };
  readonly stream_status?: {
    readonly stream_descriptor: Descriptor;
    readonly status: string;
    readonly reasons?: readonly { readonly type: string; readonly rate_limited: { quota_reset: number } }[];
  };
  readonly estimate?: Descriptor & { readonly row_estimate: number };
};

export type AirbyteMessage = {
  readonly type: string;
  readonly record?: {
    readonly stream: string;
    readonly namespace?: string;
    readonly data: Json;
    readonly emitted_at: number;
  };
  readonly state?: {
    readonly type: string;
    readonly stream: { readonly stream_descriptor: Descriptor; readonly stream_state: Json };
    readonly sourceStats: { readonly recordCount: number };
  };
  readonly trace?: Trace;
  readonly log?: Readonly<Record<"level" | "message", string>>;
  readonly connectionStatus?: { readonly status: string; readonly message?: string };
  readonly catalog?: { readonly streams: readonly CatalogStream[] };
};

/** A stream as discover describes it. */
export type CatalogStream = {
  readonly name: string;
  readonly json_schema: Json & { readonly properties: Readonly<Record<string, Json>> };
  readonly supported_sync_modes: readonly string[];
  readonly source_defined_primary_key: readonly (readonly string[])[];
};

/** The data of a stream's records. */
export const recordsOf = (messages: readonly AirbyteMessage[], stream: string): readonly Json[] =>
  messages.flatMap(({ record }) => (record?.stream === stream ? [record.data] : []));

export const idsOf = (messages: readonly AirbyteMessage[], stream = "people"): readonly unknown[] =>
  recordsOf(messages, stream).map(({ id }) => id);

export const statesOf = (messages: readonly AirbyteMessage[], stream: string): readonly Json[] =>
  messages.flatMap(({ state }) =>
    state?.stream.stream_descriptor.name === stream ? [state.stream.stream_state] : [],
  );

export const statusesOf = (messages: readonly AirbyteMessage[], stream: string): readonly string[] =>
  messages.flatMap(({ trace }) =>
    trace?.stream_status?.stream_descriptor.name === stream ? [trace.stream_status.status] : [],
  );

export const errorsOf = (messages: readonly AirbyteMessage[]): readonly NonNullable<Trace["error"]>[] =>
  messages.flatMap(({ trace }) => trace?.error ?? []);

// The schema has keys of a code generator beside JSON Schema's own, hence not strict.
const schema: object = JSON.parse(readFileSync(new URL("airbyte_protocol.json", import.meta.url), "utf8"));
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(schema, "protocol");
const isMessage = ajv.compile<AirbyteMessage>({ $ref: "protocol#/definitions/AirbyteMessage" });

/** The name of a message's body: that of its type in camel case. */
const bodyOf = (type: string): string =>
  type.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/** The lines of an output: it must end with a whole one. */
export function linesOf(output: string): string[] {
  must(output === "" || output.endsWith("\n"), "the output ends with a whole line", output.slice(-200));
  return output.split("\n").slice(0, -1);
}

/** Throws unless a rule is kept. It needs no test around it: the fuzz has none. */
export function must(keeps: boolean, rule: string, text = ""): asserts keeps {
  if (!keeps) throw new Error(`Not kept: ${rule}: ${text.slice(0, 1_000)}`);
}

/** Throws unless no reader splits a line, and all but records is ASCII. */
export function expectLine(line: string, isRecord: boolean): void {
  must(!/[\u0085\u2028\u2029\r]/.test(line), "no reader splits the line", line);
  must(isRecord || /^[\x20-\x7e]*$/.test(line), "all but records is ASCII", line);
}

/**
 * Parses the lines of one Airbyte command, decoded as UTF-8, and throws unless each is a message of the protocol and, for a
 * `read`, their order is the one that platforms rely on.
 */
export function expectAirbyteMessages(lines: readonly string[]): AirbyteMessage[] {
  const messages = lines.map(expectAirbyteMessage);
  expectTraceOrder(messages);
  const streams = messages.map(streamOf);
  for (const stream of new Set(streams)) {
    const isMine = (_: unknown, index: number): boolean => streams[index] === stream;
    if (stream !== undefined) expectStreamOrder(stream, messages.filter(isMine));
  }
  return messages;
}

export function expectAirbyteMessage(line: string): AirbyteMessage {
  const message = JSON.parse(line);
  if (!isMessage(message)) throw new Error(`No message: ${ajv.errorsText(isMessage.errors)}: ${line}`);
  const { type, record, state } = message;
  expectLine(line, type === "RECORD");
  must(Object.hasOwn(message, bodyOf(type)), "a message has the body that its type names", line);
  must(record === undefined || Object.keys(record.data).length > 0, "the platform drops empty records", line);
  if (state === undefined) return message;
  must(state.type === "STREAM", "only STREAM states are understood", line);
  must(typeof state.stream.stream_state === "object", "null would mean a reset", line);
  must(/"recordCount":\d+\.0\}/.test(line), "recordCount has a decimal point", line);
  return message;
}

/** The stream of a RECORD, STATE or STREAM_STATUS. */
export function streamOf({ record, state, trace }: AirbyteMessage): string | undefined {
  const descriptor = state?.stream.stream_descriptor ?? trace?.stream_status?.stream_descriptor;
  const { name, namespace } = record
    ? { name: record.stream, ...record }
    : { name: undefined, ...descriptor };
  return namespace === undefined || namespace === null ? name : `${namespace}/${name}`;
}

function expectTraceOrder(messages: readonly AirbyteMessage[]): void {
  let stamp = 0;
  let isEnding = false;
  for (const { trace } of messages) {
    must(!isEnding || trace?.type === "ERROR", "ERROR traces are last");
    if (trace === undefined) continue;
    must(Number.isInteger(trace.emitted_at), "emitted_at is in whole ms");
    must(trace.emitted_at > stamp, "emitted_at is unique and increases");
    stamp = trace.emitted_at;
    isEnding = trace.type === "ERROR";
  }
}

function expectStreamOrder(stream: string, messages: readonly AirbyteMessage[]): void {
  const at = messages.map(({ trace }) => trace?.stream_status?.status);
  const statuses = at.filter((status) => status !== undefined);
  const isComplete = at.at(-1) === "COMPLETE";
  must(statuses.length >= 3, "a stream has at least three statuses", stream);
  must(at[0] === "STARTED", "a stream begins with STARTED", stream);
  must(isComplete || at.at(-1) === "INCOMPLETE", "a stream ends with a terminal status", stream);
  const isRunning = statuses.slice(1, -1).every((status) => status === "RUNNING");
  must(isRunning, "a stream is RUNNING in between", stream);
  let [since, states] = [0, 0];
  for (const [index, { record, state }] of messages.entries()) {
    if (record !== undefined) {
      must(index > at.indexOf("RUNNING"), "a stream is RUNNING before its first record", stream);
      since++;
    }
    if (state === undefined) continue;
    const { recordCount } = state.sourceStats;
    must(recordCount === since, `a STATE counts the ${since} records before it, not ${recordCount}`, stream);
    since = 0;
    states++;
  }
  must(!isComplete || states > 0, "a stream has a STATE before COMPLETE", stream);
  must(!isComplete || since === 0, "a stream has a STATE after its last record", stream);
}
