#!/usr/bin/env bash
# Exports all people into delivered/people.jsonl.
set -euo pipefail

base_url=$(jq -r .base_url config.json)
api_key=$(jq -r .api_key config.json)

curl --silent --show-error --fail --compressed --connect-timeout 30 --speed-limit 1 --speed-time 60 \
  --retry 5 --retry-all-errors --header "X-API-Key: $api_key" --output export.part \
  "$base_url/api/v1/public/people/stream"
jq --compact-output 'if .success == false then error(.error.code) else . end' export.part >people.part
mkdir -p delivered
mv people.part delivered/people.jsonl
