#!/bin/sh
# Removes erased people from the tables of `state show contacts --sql postgres`, and from the files below `contacts`: see
# docs/erasure.md. Run it in the folder of erase-files.sh.
set -eu
load() {
  source-contact-intelligence state show contacts --sql postgres > load.sql
  psql -qX -f load.sql
}
load
before=$(psql -qAtX -c 'SELECT coalesce(max(load), 0) FROM people_loads')
sh erase-files.sh
load
# All that was loaded before everyone was read again is out of date.
psql -qX -v ON_ERROR_STOP=1 -c "DELETE FROM people_loads WHERE load <= $before"
