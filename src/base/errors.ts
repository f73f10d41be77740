/** The one to act, in Airbyte's words: the operator, time, or the owner of the service (or of this program). */
export type FailureType = "config_error" | "transient_error" | "system_error";

/** The part that an error of the service concerns, where it is known: one stream, or everything that this key reads. */
export type ErrorScope = "stream" | "run";

type ConnectorErrorOptions = ErrorOptions & {
  readonly code?: string | undefined;
  readonly reason?: string | undefined;
  readonly scope?: ErrorScope | undefined;
};

/** An expected failure: its message says what is wrong and what to do, and never quotes a secret or a row. */
export abstract class ConnectorError extends Error {
  abstract readonly failureType: FailureType;
  /** The service's code for it, if it came with one. */
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

/** The output or the state file takes nothing more, so that the run must end. */
export class OutputError extends ConfigError {}

/** There is nothing at an address of the service. */
export class NotFoundError extends ConfigError {}

/** The service cannot answer now: no connection, 5xx, maintenance, rate limit. Time may heal it. */
export class TransientError extends ConnectorError {
  readonly failureType = "transient_error";
}

/** The key was limited for longer than a run waits. */
export class LimitedError extends TransientError {}

/** No connection to the service has worked in this run, so that no other request will work either. */
export class UnreachableError extends TransientError {}

/** An answer is not of the interface's form. */
export class FormError extends TransientError {}

/** The service's statements contradict each other or its own interface, so that nothing more can be proven. */
export class DataError extends ConnectorError {
  readonly failureType = "system_error";
}

/**
 * The content of a body is damaged: cut, garbage, silent, or ended by the service's error line.
 * Reading the window again may heal it, and only this kind of failure ever splits a window.
 */
export class BodyError extends ConnectorError {
  readonly failureType = "transient_error";
}

/** An export in which nothing new came for too long while rows were wanted. */
export class SilenceError extends BodyError {}

/** A body whose check sum is wrong: what was decompressed of it, and passed on, may not be what the service sent. */
export class ScrambledError extends BodyError {}

export function failureTypeOf(error: unknown): FailureType {
  return error instanceof ConnectorError ? error.failureType : "system_error";
}

/** A command line that cannot be obeyed. */
export class UsageError extends Error {}
