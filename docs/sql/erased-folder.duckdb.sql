-- DuckDB. Deletes the people whom the service no longer has from a table that was loaded from `read --output contacts`,
-- after a complete full refresh into the same folder: see docs/erasure.md.
-- The living are in the newest contacts/people/full-<number>/ and in the files with a higher number.
SET VARIABLE newest = (
  SELECT max(regexp_extract(file, 'full-(\d{9})', 1)) FROM glob('contacts/people/full-*/*')
);
SET VARIABLE files = (
  SELECT list(file)
  FROM glob('contacts/people/**')
  WHERE file LIKE '%.jsonl%'
    AND (file LIKE '%full-' || getvariable('newest') || '%'
         OR regexp_extract(file, 'Z-(\d{9})\.jsonl', 1) > getvariable('newest'))
);
DELETE FROM people
WHERE NOT EXISTS (
  SELECT 1 FROM read_ndjson(getvariable('files'), columns = {id: 'VARCHAR'}) AS living WHERE living.id = people.id
);
