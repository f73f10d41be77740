#!/bin/sh
# Brings what a pod needs from a bucket, and takes what it has made there: bucket.sh pull|push. The step of steps.sh runs in
# between, in a folder DATA of the pod's own. The remote is "bucket:$BUCKET"; rclone finds it in its own variables.
#   plans/$PLAN/           plan.jsonl, failed/, and done/N, which names the folder of the try that has read shard N
#   contacts/SHARD/TRY/    what one try has read. It counts once done/N names it: files first, then the list
#                          of them, then that name.
#   state.json             of the first load, then of each daily run
set -eu
data=${DATA:-/data}
mkdir -p "$data"
remote=bucket:$BUCKET
load=plans/${PLAN:-}
try=${TRY:-$(hostname)}
shard=${JOB_COMPLETION_INDEX:-open}

say() { echo "bucket.sh: $*" >&2; }
has() { rclone lsf "$remote/$1" >"$data/found" 2>/dev/null && [ -s "$data/found" ]; }
# fetch PATH: a file that may be absent.
fetch() { if has "$1"; then rclone copyto "$remote/$1" "$data/$1"; fi; }

wait_for_plan() {
  until has "$load/plan.jsonl"; do "$@"; sleep "${WAIT:-5}"; done
  rclone copyto "$remote/$load/plan.jsonl" "$data/$load/plan.jsonl"
}

# The Job's next tries end at once too.
give_up() {
  echo | rclone rcat "$remote/$load/gave-up-$JOB_UID"
  exit 2
}

say_failures() {
  mkdir -p "$data/$load/failed"
  rclone move "$remote/$load/failed" "$data/$load/failed" 2>/dev/null || true
  CODE_FILE='' sh "${STEPS:-/steps}/steps.sh" failures || give_up
}

# list FOLDER: the name and size of each file.
list() { rclone lsf -R --files-only --format ps --separator ' ' --exclude '.*' --exclude '.*/**' "$1"; }

# take_state NAME: the state of a finished try, and proof that the bucket has its files.
take_state() {
  from=$(rclone cat "$remote/$load/done/$1")
  to=$data/contacts/$(dirname "$from")
  rclone copyto "$remote/contacts/$from/state.json" "$to/state.json"
  list "$remote/contacts/$from" >"$data/found"
  rclone cat "$remote/contacts/$from/files" | while read -r file bytes; do
    grep -qxF "$file $bytes" "$data/found" || { say "$remote/contacts/$from/$file is not there with $bytes bytes"; exit 2; }
  done
}

# give_rows FOLDER TO: files first, then the list of them.
give_rows() {
  rclone copy --checksum --exclude '.*' --exclude '.*/**' "$1" "$remote/$2"
  list "$1" | rclone rcat "$remote/$2/files"
}

give_shard() {
  for folder in "$data"/contacts/shard-*; do
    # A finish step has the states of all other shards too.
    if [ ! -d "$folder" ] || { [ "$shard" = open ] && [ "${folder%-open}" = "$folder" ]; }; then continue; fi
    name=$(basename "$folder")/$try
    give_rows "$folder" "contacts/$name"
    echo "$name" | rclone rcat "$remote/$load/done/$shard"
  done
}

case "$1 ${JOB#contact-intelligence-}" in
  'pull plan') fetch "$load/made-for"; fetch "$load/plan.jsonl" ;;
  'push plan') code=$(cat "$data/code") ;;
  'pull shards') wait_for_plan true; fetch "$load/done/$shard" ;;
  'push shards') code=$(cat "$data/code"); if [ "$code" -eq 0 ]; then give_shard; fi ;;
  'pull finish')
    if has "$load/gave-up-$JOB_UID"; then exit 2; fi
    wait_for_plan say_failures
    closed=$(grep -vc '"to":null' "$data/$load/plan.jsonl" || true)
    until [ "$(rclone lsf "$remote/$load/done" 2>/dev/null | grep -c '^[0-9]' || true)" -ge "$closed" ]; do
      say_failures
      sleep "${WAIT:-5}"
    done
    mkdir -p "$data/$load/done"
    for name in $(rclone lsf "$remote/$load/done" | grep '^[0-9]'); do take_state "$name"; touch "$data/$load/done/$name"; done
    ;;
  'push finish') code=$(cat "$data/code"); if [ "$code" -eq 0 ]; then give_shard; rclone copyto "$data/state.json" "$remote/state.json"; fi ;;
  'pull daily'*) fetch state.json ;;
  'push daily'*)
    code=$(cat "$data/code")
    if [ "$code" -eq 0 ]; then
      give_rows "$data/contacts" "contacts/daily/$try"
      rclone copyto "$data/contacts/state.json" "$remote/state.json"
    fi
    ;;
esac
[ "$1" = push ] || exit 0
for file in made-for plan.jsonl failed; do
  [ ! -e "$data/$load/$file" ] || rclone copy "$data/$load/$file" "$remote/$load$([ "$file" != failed ] || echo /failed)"
done
exit "$code"
