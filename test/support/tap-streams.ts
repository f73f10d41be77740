import type { TapStream } from "../../src/catalog/singer.ts";

export const PEOPLE: TapStream = {
  name: "people",
  schema: {
    type: "object",
    required: ["id", "name"],
    properties: {
      id: { type: "string" },
      discoveredAt: { type: ["string", "null"] },
      name: { type: ["string", "null"] },
      company: {
        type: ["object", "null"],
        properties: { id: {}, domain: {}, address: { type: "object", properties: { city: {}, zip: {} } } },
      },
      tags: { type: ["array", "null"], items: { type: "object", properties: { a: {} } } },
    },
  },
  keyProperties: ["id"],
  replicationKey: "discoveredAt",
  methods: ["INCREMENTAL", "FULL_TABLE"],
  selectedByDefault: true,
  sampled: null,
};

export const LOOKUPS: TapStream = {
  name: "lookups",
  schema: { type: "object", properties: { job_id: {} } },
  keyProperties: ["job_id"],
  replicationKey: null,
  methods: ["FULL_TABLE"],
  selectedByDefault: false,
  sampled: false,
};
