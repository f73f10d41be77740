const FIELDS =
  "job_id position domain email source created_at checked_at verified_at response contacts".split(" ");

/** Airbyte's catalog of these streams, incremental. */
export const airbyteCatalogOf = (streams: readonly string[]): object => ({
  streams: streams.map((name) => ({ stream: { name, json_schema: {} }, sync_mode: "incremental" })),
});

/** Singer's catalog of these streams, incremental, with the fields of all job streams. */
export const tapCatalogOf = (streams: readonly string[]): object => ({
  streams: streams.map((name) => ({
    tap_stream_id: name,
    stream: name,
    schema: { type: "object", properties: Object.fromEntries(FIELDS.map((field) => [field, {}])) },
    metadata: [
      { breadcrumb: [], metadata: { selected: true, "replication-method": "INCREMENTAL" } },
      ...FIELDS.map((field) => ({ breadcrumb: ["properties", field], metadata: { selected: true } })),
    ],
  })),
});
