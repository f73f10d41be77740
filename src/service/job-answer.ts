import type { JsonObject } from "../json.ts";
import type { Lines } from "../sync/event.ts";
import type { Collected } from "../sync/jobs.ts";
import { statusError } from "./failures.ts";

/** Makes records into lines, and tells whoever watches the fields. */
export type ToLines = (records: readonly JsonObject[]) => Lines;

/** What an error says about one job alone; undefined for one that says nothing about it. */
export function readRefusal(what: string, status: number, code: string | undefined): Collected | undefined {
  if (status === 404 && code === "JOB_NOT_FOUND") return { kind: "gone" };
  if (status === 403 && code === "ACCESS_DENIED") return { kind: "denied" };
  const isOdd = status === 400 || status === 404 || status === 410 || status === 422;
  return isOdd ? { kind: "odd", error: statusError(what, status, code) } : undefined;
}

/** A moment that the service names, as epoch ms; null for anything else. */
export function toMoment(value: unknown): number | null {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

/** The newest of the date-times, in UTC to the millisecond; null if there is none. */
export function toCursor(values: readonly unknown[]): string | null {
  const moments = values.map(toMoment).filter((moment) => moment !== null);
  return moments.length === 0 ? null : new Date(Math.max(...moments)).toISOString();
}
