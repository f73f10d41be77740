import { DataError } from "../base/errors.ts";

const LONGEST_ID = 200;

/** An id of the service, as one segment of a path. @throws DataError for an id that would change the path or is too long */
export function toSegment(id: string): string {
  if (!isUsableId(id)) {
    throw new DataError(
      `Cannot use an id of the service: it has ${id.length} characters or contains what no path may contain. Tell the service's owner`,
    );
  }
  return encodeURIComponent(id);
}

/** Whether an id can be in a path: 1 to 200 characters of well-formed Unicode, not only dots. */
export function isUsableId(id: string): boolean {
  return id !== "" && id.length <= LONGEST_ID && !/^\.{1,2}$/.test(id) && !/\p{Surrogate}/u.test(id);
}
