/** Airbyte's word for the part that must change: the config, time, or the service (or this program). */
export type FailureType = "config_error" | "transient_error" | "system_error";

/** The part that an error of the service concerns: one stream, everything of this key, or everything at this address. */
export type ErrorScope = "stream" | "run" | "service";

type ConnectorErrorOptions = ErrorOptions & {
  readonly code?: string | undefined;
  readonly reason?: string | undefined;
  readonly scope?: ErrorScope | undefined;
};

/** An expected failure. Its message names the problem and the remedy, and never quotes a secret or a row. */
export abstract class ConnectorError extends Error {
  abstract readonly failureType: FailureType;
  /** The service's code, if it sent one. */
  readonly code: string | undefined;
  /** The cause in a few words, such as "the connection was refused (ECONNREFUSED)". */
  readonly reason: string | undefined;
  readonly scope: ErrorScope | undefined;

  constructor(message: string, options: ConnectorErrorOptions = {}) {
    super(message, options);
    this.code = options.code;
    this.reason = options.reason;
    this.scope = options.scope;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

/** The operator must change something. Never retried. */
export class ConfigError extends ConnectorError {
  readonly failureType = "config_error";
}

/** The output or the state file cannot be written, so the run must end. */
export class OutputError extends ConfigError {}

/** There is nothing at an address of the service. */
export class NotFoundError extends ConfigError {}

/** The service cannot answer now: no connection, 5xx, maintenance, rate limit. It may answer later. */
export class TransientError extends ConnectorError {
  readonly failureType = "transient_error";
}

/** The service contradicts itself or its interface, so the connector cannot verify the result. */
export class DataError extends ConnectorError {
  readonly failureType = "system_error";
}

/** A body is cut, damaged, silent, or ends with the service's error line. Reading the window again may succeed. */
export class BodyError extends ConnectorError {
  readonly failureType = "transient_error";
}

/** An export is something else than lines of JSON. It will be so again, but the list may be readable. */
export class FormError extends BodyError {}

/** The check sum of a body is wrong: rows that were passed on may not be those that the service sent. */
export class ScrambledError extends BodyError {}

export function failureTypeOf(error: unknown): FailureType {
  return error instanceof ConnectorError ? error.failureType : "system_error";
}

/** A command line that the connector cannot obey. */
export class UsageError extends Error {}
