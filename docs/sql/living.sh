#!/bin/sh
# Writes living.jsonl: the newest contacts/people/full-<number>/ and the files with a higher number.
newest=$(printf '%s\n' contacts/people/full-* | sort | tail -n 1)
number=${newest##*full-}
for file in "$newest"/*.jsonl* contacts/people/*.jsonl*; do
  own=$(basename "$file" | sed -n 's/.*-\([0-9]\{9\}\)\.jsonl.*/\1/p')
  case "$file" in "$newest"/*) ;; *) [ "$own" -gt "$number" ] 2>/dev/null || continue ;; esac
  case "$file" in *.gz) gzip -dc "$file" ;; *) cat "$file" ;; esac
done > living.jsonl
