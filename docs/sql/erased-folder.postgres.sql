-- PostgreSQL, for psql. Deletes the people whom the service no longer has from a table that was loaded from
-- `read --output contacts`, after a complete full refresh into the same folder: see docs/erasure.md.
-- living.jsonl holds the newest contacts/people/full-<number>/ and the files with a higher number.
CREATE TEMPORARY TABLE living (line jsonb);
-- No JSON line holds the characters that stand here for quotes and separators.
\copy living FROM 'living.jsonl' WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
DELETE FROM people
WHERE EXISTS (SELECT 1 FROM living)
  AND NOT EXISTS (SELECT 1 FROM living WHERE living.line ->> 'id' = people.id);
