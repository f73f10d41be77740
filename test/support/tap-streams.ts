import type { DiscoveredStream } from "../../src/catalog/airbyte.ts";
import { TIMESTAMP } from "../../src/catalog/schema.ts";
import { STREAMS } from "../../src/catalog/streams.ts";

export const PEOPLE: DiscoveredStream = {
  spec: STREAMS[0],
  schema: {
    type: "object",
    required: ["id", "name"],
    properties: {
      id: { type: "string" },
      discoveredAt: TIMESTAMP,
      name: { type: ["string", "null"] },
      company: {
        type: ["object", "null"],
        properties: { id: {}, domain: {}, address: { type: "object", properties: { city: {}, zip: {} } } },
      },
      tags: { type: ["array", "null"], items: { type: "object", properties: { a: {} } } },
    },
  },
  sampled: null,
};

export const LOOKUPS: DiscoveredStream = {
  spec: STREAMS[3],
  schema: { type: "object", properties: { job_id: {} } },
  sampled: false,
};
