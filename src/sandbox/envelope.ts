import type { Answer } from "./answer.ts";
import { toWire, wireJson } from "./wire-text.ts";

/** A refusal in the words of the interface. */
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

export const errorBody = (code: string, message: string): string =>
  wireJson({ success: false, error: { code, message } });

export function errorAnswer({ status, code, message, headers }: ServiceError): Answer {
  return jsonAnswer(status, errorBody(code, message), headers);
}

export function jsonAnswer(
  status: number,
  wireText: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
    pieces: [wireText],
    rows: () => 1,
  };
}

export function textAnswer(status: number, contentType: string, text: string): Answer {
  return { status, headers: { "content-type": contentType }, pieces: [toWire(text)], rows: () => 1 };
}
