#!/bin/sh
# Removes erased people from the table people_loads and from the files below `contacts` and `loaded`: see docs/erasure.md.
# Run it in the folder of erase-files.sh and load.sh, the recipe "Load PostgreSQL with COPY" of docs/files.md.
set -eu
sh load.sh
before=$(psql -qAtX -c 'SELECT coalesce(max(load), 0) FROM people_loads')
older=$(ls loaded)
sh erase-files.sh
sh load.sh
if [ -n "$(ls contacts/people)" ]; then
  echo "Nothing was deleted: load.sh did not load all files of contacts/people" >&2
  exit 1
fi
# All that was loaded before everyone was read again is out of date.
psql -qX -v ON_ERROR_STOP=1 -c "DELETE FROM people_loads WHERE load <= $before"
for file in $older; do rm "loaded/$file"; done
