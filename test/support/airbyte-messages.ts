import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { expect } from "vitest";

export type Json = Readonly<Record<string, unknown>>;

/** A stream as the protocol names it. */
export type Descriptor = { readonly name: string; readonly namespace?: string | null };

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
};

export type Trace = {
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

const NAMES: Readonly<Record<string, string>> = {
  RECORD: "record",
  STATE: "state",
  LOG: "log",
  SPEC: "spec",
  CONNECTION_STATUS: "connectionStatus",
  CATALOG: "catalog",
  TRACE: "trace",
};

/** The lines of an output: it must end with a whole one, and hold no blank one. */
export function linesOf(output: string): string[] {
  expect(output === "" || output.endsWith("\n"), "the output ends with a whole line").toBe(true);
  return output.split("\n").slice(0, -1);
}

/**
 * Parses the lines of one Airbyte command, decoded as UTF-8, and fails the test unless each is a message of the
 * protocol and, for a `read`, their order is the one that platforms rely on.
 */
export function expectAirbyteMessages(lines: readonly string[]): AirbyteMessage[] {
  const messages = lines.map(expectAirbyteMessage);
  expectTraceOrder(messages);
  const streams = new Set(messages.flatMap((message) => streamOf(message) ?? []));
  for (const stream of streams) {
    const mine = lines.flatMap((line, index) => {
      const message = messages[index];
      return message !== undefined && streamOf(message) === stream ? [{ line, message }] : [];
    });
    expectStreamOrder(stream, mine);
  }
  return messages;
}

/** Fails the test unless a line keeps a rule. Outputs have thousands of lines, for which expect() is too slow. */
export function mustKeep(line: string, rule: string, keeps: boolean): void {
  if (!keeps) expect.fail(`Not kept: ${rule}: ${line}`);
}

function expectAirbyteMessage(line: string): AirbyteMessage {
  const message = JSON.parse(line);
  mustKeep(line, "no reader splits the line", !/[\u0085\u2028\u2029\r]/.test(line));
  if (!isMessage(message)) expect.fail(`${ajv.errorsText(isMessage.errors)}: ${line}`);
  const body = NAMES[message.type] ?? "unknown type";
  mustKeep(line, "a message has the body that its type names", Object.hasOwn(message, body));
  const isRecord = message.type === "RECORD";
  mustKeep(line, "all but records is ASCII", isRecord || /^[\x20-\x7e]*$/.test(line));
  const isEmpty = isRecord && Object.keys(message.record?.data ?? {}).length === 0;
  mustKeep(line, "the platform drops empty records", !isEmpty);
  return message;
}

/** The stream of a RECORD, STATE or STREAM_STATUS. */
function streamOf({ record, state, trace }: AirbyteMessage): string | undefined {
  const descriptor = state?.stream.stream_descriptor ?? trace?.stream_status?.stream_descriptor;
  const [name, namespace] =
    record === undefined ? [descriptor?.name, descriptor?.namespace] : [record.stream, record.namespace];
  return namespace === undefined || namespace === null ? name : `${namespace}/${name}`;
}

function expectTraceOrder(messages: readonly AirbyteMessage[]): void {
  const stamps = messages.flatMap(({ trace }) => (trace === undefined ? [] : [trace.emitted_at]));
  expect(stamps.every(Number.isInteger), "emitted_at is in whole ms").toBe(true);
  expect(stamps, "emitted_at is unique and increases").toEqual(
    [...new Set(stamps)].toSorted((a, b) => a - b),
  );
  const isError = messages.map(({ trace }) => trace?.type === "ERROR");
  const first = isError.indexOf(true);
  if (first !== -1) expect(isError.slice(first), "ERROR traces are last").not.toContain(false);
}

type Said = { readonly line: string; readonly message: AirbyteMessage };

function expectStreamOrder(stream: string, said: readonly Said[]): void {
  const statuses = said.flatMap(({ message }) => message.trace?.stream_status?.status ?? []);
  expect(statuses.length, `${stream} has at least three statuses`).toBeGreaterThanOrEqual(3);
  expect(said[0]?.message.trace?.stream_status?.status, `${stream} begins with STARTED`).toBe("STARTED");
  const last = said.at(-1)?.message.trace?.stream_status?.status;
  expect(["COMPLETE", "INCOMPLETE"], `${stream} ends with a terminal status`).toContain(last);
  expect(new Set(statuses.slice(1, -1)), `${stream} is RUNNING in between`).toEqual(new Set(["RUNNING"]));
  expectRunningFirst(stream, said);
  expectCounts(stream, said, last === "COMPLETE");
}

function expectRunningFirst(stream: string, said: readonly Said[]): void {
  const running = said.findIndex(({ message }) => message.trace?.stream_status?.status === "RUNNING");
  const record = said.findIndex(({ message }) => message.type === "RECORD");
  if (record !== -1) expect(running, `${stream} is RUNNING before its first record`).toBeLessThan(record);
}

function expectCounts(stream: string, said: readonly Said[], complete: boolean): void {
  let since = 0;
  let states = 0;
  for (const { line, message } of said) {
    if (message.type === "RECORD") since++;
    if (message.state === undefined) continue;
    expect(message.state.type, "only STREAM states are understood").toBe("STREAM");
    expect(line, "recordCount has a decimal point").toMatch(/"recordCount":\d+\.0\}/);
    expect(message.state.sourceStats.recordCount, `records of ${stream} since its last STATE`).toBe(since);
    expect(message.state.stream.stream_state, "null would mean a reset").toBeTypeOf("object");
    since = 0;
    states++;
  }
  if (complete) expect(states, `${stream} has a STATE before COMPLETE`).toBeGreaterThan(0);
  if (complete) expect(since, `${stream} has a STATE after its last record`).toBe(0);
}
