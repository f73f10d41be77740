import { readFileSync } from "node:fs";
import { Ajv } from "ajv";

export type Json = Readonly<Record<string, unknown>>;

/** A stream as the protocol names it. */
type Descriptor = { readonly name: string; readonly namespace?: string | null };

export type AirbyteMessage = { readonly type: string } & {
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
  readonly log?: { readonly level: string; readonly message: string };
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

type Trace = {
  readonly type: string;
  readonly emitted_at: number;
  readonly error?: {
    readonly message: string;
    readonly internal_message: string;
    readonly stack_trace?: string;
    readonly failure_type: string;
    readonly stream_descriptor?: Descriptor;
  };
  readonly stream_status?: {
    readonly stream_descriptor: Descriptor;
    readonly status: string;
    readonly reasons?: readonly { readonly type: string; readonly rate_limited: { quota_reset: number } }[];
  };
  readonly estimate?: { readonly name: string; readonly namespace?: string; readonly row_estimate: number };
};

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

/**
 * Parses the lines of one Airbyte command, decoded as UTF-8, and throws unless each is a message of the protocol and, for a
 * `read`, their order is the one that platforms rely on.
 */
export function expectAirbyteMessages(lines: readonly string[]): AirbyteMessage[] {
  const messages = lines.map(expectAirbyteMessage);
  expectTraceOrder(messages);
  const said = new Map<string, Said[]>();
  for (const [index, message] of messages.entries()) {
    const stream = streamOf(message);
    if (stream === undefined) continue;
    const one = { line: lines[index] ?? "", message, status: message.trace?.stream_status?.status };
    if (said.get(stream)?.push(one) === undefined) said.set(stream, [one]);
  }
  for (const [stream, mine] of said) expectStreamOrder(stream, mine);
  return messages;
}

export function expectAirbyteMessage(line: string): AirbyteMessage {
  const message = JSON.parse(line);
  must(!/[\u0085\u2028\u2029\r]/.test(line), "no reader splits the line", line);
  if (!isMessage(message)) throw new Error(`No message: ${ajv.errorsText(isMessage.errors)}: ${line}`);
  const body = bodyOf(message.type);
  must(Object.hasOwn(message, body), "a message has the body that its type names", line);
  const isRecord = message.type === "RECORD";
  must(isRecord || /^[\x20-\x7e]*$/.test(line), "all but records is ASCII", line);
  const isEmpty = isRecord && Object.keys(message.record?.data ?? {}).length === 0;
  must(!isEmpty, "the platform drops empty records", line);
  return message;
}

/** The stream of a RECORD, STATE or STREAM_STATUS. */
export function streamOf({ record, state, trace }: AirbyteMessage): string | undefined {
  const descriptor = state?.stream.stream_descriptor ?? trace?.stream_status?.stream_descriptor;
  const [name, namespace] =
    record === undefined ? [descriptor?.name, descriptor?.namespace] : [record.stream, record.namespace];
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

type Said = { readonly line: string; readonly message: AirbyteMessage; readonly status: string | undefined };

function expectStreamOrder(stream: string, said: readonly Said[]): void {
  const statuses = said.flatMap(({ status }) => status ?? []);
  const [first, last] = [said[0]?.status, said.at(-1)?.status];
  must(statuses.length >= 3, "a stream has at least three statuses", stream);
  must(first === "STARTED", "a stream begins with STARTED", stream);
  must(last === "COMPLETE" || last === "INCOMPLETE", "a stream ends with a terminal status", stream);
  must(
    statuses.slice(1, -1).every((status) => status === "RUNNING"),
    "a stream is RUNNING in between",
    stream,
  );
  expectCounts(stream, said, last === "COMPLETE");
}

function expectCounts(stream: string, said: readonly Said[], complete: boolean): void {
  let [since, states, isRunning] = [0, 0, false];
  for (const { line, message, status } of said) {
    isRunning ||= status === "RUNNING";
    if (message.type === "RECORD") since++;
    must(isRunning || since === 0, "a stream is RUNNING before its first record", stream);
    if (message.state === undefined) continue;
    must(message.state.type === "STREAM", "only STREAM states are understood", line);
    must(/"recordCount":\d+\.0\}/.test(line), "recordCount has a decimal point", line);
    must(
      message.state.sourceStats.recordCount === since,
      `a STATE counts the ${since} records before it`,
      line,
    );
    must(typeof message.state.stream.stream_state === "object", "null would mean a reset", line);
    since = 0;
    states++;
  }
  must(!complete || states > 0, "a stream has a STATE before COMPLETE", stream);
  must(!complete || since === 0, "a stream has a STATE after its last record", stream);
}
