-- Deletes the people that the service no longer has, after a complete refresh by Airbyte.
-- DuckDB and PostgreSQL. Run it only when the refresh has succeeded: see docs/erasure.md.
-- A refresh writes everyone who is still there under a new _airbyte_generation_id. People who arrived or were checked
-- again since then have that number, too. All rows of a person are kept if one of them has it.
DELETE FROM people
WHERE NOT EXISTS (
  SELECT 1
  FROM people AS living
  WHERE living.id = people.id
    AND living._airbyte_generation_id = (SELECT max(_airbyte_generation_id) FROM people)
);
