import { expect, it } from "vitest";
import { retryWhen } from "../../src/api/error-table.ts";

/** Refusals by HTTP's own words (RFC 9110, 6585, 7725): nothing was done. Before a 408 something may have been. */
const NOT_DONE = [
  ...[400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 413, 414, 415, 417, 421, 422, 423],
  ...[426, 428, 429, 431, 451],
];

it("a submission may be made again after a status by which nothing was done, and after no other", () => {
  const statuses = Array.from({ length: 1_000 }, (_, status) => status);
  expect(statuses.filter((status) => retryWhen(status, undefined) !== undefined)).toEqual(NOT_DONE);
});
