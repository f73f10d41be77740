/** Airbyte's words for a cause: the config, a temporary failure, or a fault of the service or of this program. */
export type FailureType = "config_error" | "transient_error" | "system_error";

/** The part that an error of the service stops: one stream, all streams of the key, or all requests to the address. */
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

/** A person must change something. The program does not retry. */
export class ConfigError extends ConnectorError {
  readonly failureType = "config_error";
}

/** The output or the state file cannot be written, so the run must end. */
export class OutputError extends ConfigError {}

/** There is nothing at an address of the service. */
export class NotFoundError extends ConfigError {}

/** The service cannot answer now, but may answer later: no connection, 5xx, maintenance, rate limit. */
export class TransientError extends ConnectorError {
  readonly failureType = "transient_error";
}

/** The service contradicts itself or its interface, so the connector cannot verify the result. */
export class DataError extends ConnectorError {
  readonly failureType = "system_error";
}

/** A body is cut, damaged, silent, or ends with the service's error line. Another request may succeed. */
export class BodyError extends ConnectorError {
  readonly failureType = "transient_error";
}

/** An export does not consist of JSON lines. Another request would not change that, but the list may be readable. */
export class FormError extends BodyError {}

/** The checksum of a body is wrong. Rows that were already sent on may be damaged. */
export class ScrambledError extends BodyError {}

export const failureTypeOf = (error: unknown): FailureType =>
  error instanceof ConnectorError ? error.failureType : "system_error";

/** The command line is wrong. */
export class UsageError extends Error {}
