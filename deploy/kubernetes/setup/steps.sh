#!/bin/sh
# What the pods do: steps.sh NAME. All of them share the folder DATA, which is /data.
# Exit code 2: only a person can correct it.
# AIRBYTE_ENTRYPOINT is a command with its arguments, SHARDS comes from outside, and the files of done/ have numbers as names.
# shellcheck disable=SC2086,SC2153,SC2012
set -eu
data=${DATA:-/data}
mkdir -p "$data"
load=$data/plans/${PLAN:-}
plan=$load/plan.jsonl
tries=9 # backoffLimitPerIndex and one
# Where another container takes the result to a bucket: the exit code is for that one.
[ -z "${CODE_FILE:-}" ] || trap 'echo $? >"$CODE_FILE"; exit 0' EXIT

# In the log, and in what `kubectl describe pods` shows of a pod that has failed.
say() {
  echo "steps.sh: $*" >&2
  [ ! -w /dev/termination-log ] || echo "$*" >>/dev/termination-log
}
refuse() { say "$*"; exit 2; }

# leave WHO TEXT: leaves a failure in a file, for the log of the finish step.
leave() {
  mkdir -p "$load/failed"
  echo "$2" >"$load/failed/.$1"
  mv "$load/failed/.$1" "$load/failed/$1"
}

# forward COMMAND...: runs a command, which is told when the pod is to end.
forward() {
  "$@" & child=$!
  trap 'kill -TERM "$child"; wait "$child" || true; exit 143' TERM
  wait "$child"
}

# attempt WHO COMMAND...: runs a command, and leaves its failure.
attempt() {
  who=$1; shift
  code=0
  forward "$@" || code=$?
  [ "$code" -ne 0 ] || return 0
  try=$((${FAILED_TRIES:-0} + 1))
  end="Try $try of $tries"
  if [ "$code" -eq 2 ] || [ "$try" -ge "$tries" ]; then end="$end, the last"; fi
  leave "$who" "$who failed with exit code $code. $end. Its log says why"
  say "exit code $code. $end"
  exit "$code"
}

# The Job's next tries end at once too, until it has none left.
give_up() {
  touch "$load/gave-up-${JOB_UID:-}"
  refuse 'docs/kubernetes.md says how to go on: "When something fails"'
}

# Says each failure once. After the last try of a step, this one fails too.
say_failures() {
  last=
  for file in "$load"/failed/*; do
    [ -e "$file" ] || continue
    text=$(cat "$file")
    rm "$file"
    say "$text"
    case $text in *', the last. '*) last=yes ;; esac
  done
  [ -z "$last" ] || give_up
}

refuse_plan() {
  leave plan "plan failed with exit code 2. Try 1, the last. $*"
  refuse "$*"
}

case $1 in
  plan)
    [ "$SHARDS" = "$COMPLETIONS" ] || refuse_plan "SHARDS is $SHARDS, but the Job has $COMPLETIONS completions: change SHARDS alone"
    mkdir -p "$load"
    wanted="$SHARDS shards of ${STREAMS%% *}"
    known=$(cat "$load/made-for" 2>/dev/null || echo "$wanted")
    [ "$known" = "$wanted" ] || refuse_plan "the plan \"$PLAN\" has $known, not $wanted: give PLAN another name"
    # A plan that is there is kept, so that every try of every shard reads the same one.
    [ ! -s "$plan" ] || exit 0
    echo "$wanted" >"$load/made-for"
    attempt plan $AIRBYTE_ENTRYPOINT "$@" --stream "${STREAMS%% *}" --shards "$SHARDS" --shards-at-once "$SHARDS_AT_ONCE" \
      >"$plan.part"
    mv "$plan.part" "$plan"
    ;;
  shard)
    until [ -s "$plan" ]; do sleep 2; done
    # The open shard comes after all others: the finish step reads it.
    line=$(sed -n "$((JOB_COMPLETION_INDEX + 1))p" "$plan")
    case $line in '' | *'"to":null'*) exit 0 ;; esac
    [ ! -e "$load/done/$JOB_COMPLETION_INDEX" ] || exit 0
    attempt "shard $JOB_COMPLETION_INDEX" \
      $AIRBYTE_ENTRYPOINT read --plan "$plan" --shard "$JOB_COMPLETION_INDEX" --output "$data/contacts" --compress gzip
    mkdir -p "$load/done"
    touch "$load/done/$JOB_COMPLETION_INDEX"
    ;;
  finish)
    [ ! -e "$load/gave-up-${JOB_UID:-}" ] || give_up
    # What failed before this Job began is corrected, or fails again.
    [ -e "$load/begun-${JOB_UID:-}" ] || rm -rf "$load/failed"
    mkdir -p "$load"
    touch "$load/begun-${JOB_UID:-}"
    until [ -s "$plan" ]; do say_failures; sleep 2; done
    closed=$(grep -vc '"to":null' "$plan" || true)
    until [ "$(ls "$load/done" 2>/dev/null | wc -l)" -ge "$closed" ]; do say_failures; sleep 5; done
    for pause in 10 60 300 600 0; do
      code=0
      forward $AIRBYTE_ENTRYPOINT read --plan "$plan" --shard open --output "$data/contacts" --compress gzip || code=$?
      [ "$code" -ne 0 ] || break
      if [ "$code" -eq 2 ] || [ "$pause" -eq 0 ]; then give_up; fi
      sleep "$pause"
    done
    shards="$data/contacts/shard-$(sed -n '1s/.*"plan":"\([0-9a-f]*\)".*/\1/p' "$plan")-"
    $AIRBYTE_ENTRYPOINT state merge "$shards"*${BUCKET:+/state.json} >"$data/state.json.part" || give_up
    mv "$data/state.json.part" "$data/state.json"
    for folder in "$data"/contacts/shard-*; do
      case $folder in "$shards"*) ;; *) say "$folder is of another plan: remove it" ;; esac
    done
    ;;
  failures)
    say_failures
    ;;
  daily)
    # The first daily run goes on from the first load, every later one from the run before it.
    shift
    if [ ! -e "$data/contacts/state.json" ]; then set -- --state "$data/state.json"; fi
    for stream in $STREAMS; do set -- "$@" --stream "$stream"; done
    forward $AIRBYTE_ENTRYPOINT read --output "$data/contacts" --compress gzip "$@"
    ;;
esac
