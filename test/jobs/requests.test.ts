import { expect, it } from "vitest";
import { toMoment } from "../../src/jobs/requests.ts";

it.each([
  "2026-03-02T10:00:00",
  "2026-03-02 10:00",
  "2026-03-02T10:00:00Z",
  "2026-03-02T11:00:00+01:00",
  "Mon, 02 Mar 2026 10:00:00 GMT",
  "Mon, 02 Mar 2026 05:00:00 EST",
])("toMoment() reads %j in UTC, whatever the zone of the machine", (text) => {
  expect(toMoment(text)).toBe(Date.UTC(2026, 2, 2, 10));
});
