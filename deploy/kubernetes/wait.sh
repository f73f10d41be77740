#!/bin/sh
# Waits until these Jobs have succeeded: wait.sh JOB... Exit code 1, with the reason, once one of them has failed, or pods cannot
# start. A Job whose pods cannot start, for example because no node can pull the image, never fails by itself.
set -eu
k() { kubectl --namespace contact-intelligence "$@"; }
pods() { k get pods -l app=contact-intelligence "$@"; }

fail() {
  echo "wait.sh: $*" >&2
  pods >&2
  pods -o jsonpath='{range .items[*].status.containerStatuses[*]}{.state.terminated.message}{"\n"}{end}' | sort -u >&2
  k get events --field-selector type=Warning --sort-by=.lastTimestamp | tail -n 5 >&2
  exit 1
}

ended='{range .status.conditions[?(@.status=="True")]}{.type}: {.message} {end}failed indexes: {.status.failedIndexes}'
waiting='[?(@.state.waiting.reason)]}{" "}{.state.waiting.reason}{": "}{.state.waiting.message}{end}'
stuck='{range .items[*]}{.metadata.name}'
stuck="$stuck{range .status.initContainerStatuses$waiting{range .status.containerStatuses$waiting{\"\\n\"}{end}"

k get job "$@" >/dev/null
# Turns of five seconds with a container that cannot start, and without any pod that runs.
blocked=0
idle=0
while :; do
  open=
  for job in "$@"; do
    end=$(k get job "$job" -o jsonpath="$ended") || end=
    case $end in
      *Failed:* | *': '[0-9]*) fail "$job: ${end%failed indexes: }" ;;
      *Complete:*) ;;
      *) open=yes ;;
    esac
  done
  [ -n "$open" ] || exit 0
  reason=$(pods -o jsonpath="$stuck" | awk '$2 != "" && $2 !~ /^(ContainerCreating|PodInitializing):/ {print; exit}')
  blocked=$([ -z "$reason" ] && echo 0 || echo $((blocked + 1)))
  [ "$blocked" -lt 12 ] || fail "a pod cannot start: $reason"
  case $(pods -o jsonpath='{.items[*].status.phase}') in
    *Running*) idle=0 ;;
    *) idle=$((idle + 1)) ;;
  esac
  [ "$idle" -lt 60 ] || fail "no pod has run for five minutes"
  sleep 5
done
