import { DataError } from "../base/errors.ts";

const LONGEST_ID = 200;

/**
 * An id that the service handed out, as one segment of a path.
 * @throws DataError for an id that would change the path or is longer than 200 characters
 */
export function toSegment(id: string): string {
  if (!isUsableId(id)) {
    throw new DataError(
      `Cannot use an id of the service: it has ${id.length} characters or contains what no path may contain. Tell the service's owner`,
    );
  }
  return encodeURIComponent(id);
}

/** Whether an id can be in a path: 1 to 200 characters, well-formed Unicode, no dots alone. */
export function isUsableId(id: string): boolean {
  return id !== "" && id.length <= LONGEST_ID && !/^\.{1,2}$/.test(id) && !/\p{Surrogate}/u.test(id);
}
