/** A refusal with a code of the interface. */
export class ServiceError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

export const invalidParameter = (message: string): ServiceError =>
  new ServiceError(400, "INVALID_PARAMETER", message);
