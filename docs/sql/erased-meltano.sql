-- Deletes the people that the service no longer has, after a complete FULL_TABLE run in Meltano
-- with emit_activate_version_messages. DuckDB and PostgreSQL: see docs/erasure.md.
-- Such a run gives everyone who is still there the highest _sdc_table_version. Everyone at the service was received
-- by that run or by a later one; the erased were received before it.
DELETE FROM people
WHERE _sdc_received_at < (
  SELECT min(_sdc_received_at)
  FROM people
  WHERE _sdc_table_version = (SELECT max(_sdc_table_version) FROM people)
);
