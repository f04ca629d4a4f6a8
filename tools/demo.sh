#!/usr/bin/env bash
# ./dev demo: holdfast at work on this machine, in under 30 seconds and without
# a server. Fails if what it shows is not true.
#
# usage: demo.sh [PATH-OF-HOLDFAST]
set -euo pipefail

holdfast=${1:-${HOLDFAST:-holdfast}}
work=$(mktemp -d)
export HOLDFAST_URL="sqlite:$work/locks.db"

bold='' dim='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# Shows a call as one would type it, and makes it.
show() {
  local word typed=''
  for word in "$@"; do
    [[ $word =~ ^[[:alnum:]_./=-]+$ ]] || word="'$word'"
    typed+=" $word"
  done
  printf '%s$ holdfast%s%s\n' "$dim" "$typed" "$plain"
  "$holdfast" "$@"
}
untrue() {
  printf '\ndemo: this should not happen: %s\n' "$*" >&2
  exit 1
}
# Until the condition holds; 10 s are far more than it takes.
until_true() {
  for _ in {1..500}; do
    "$@" && return
    sleep 0.02
  done
  untrue "still not after 10 s: $*"
}
queue_is() { [[ $("$holdfast" show printer) == *"$1 wait"* ]]; }

started=()
cleanup() {
  for pid in "${started[@]}"; do
    kill -TERM "$pid" 2>/dev/null || true
  done
  wait || true
  rm -rf "$work"
}
trap cleanup EXIT

say '1. A command under a lock. It finds the name and a fencing token in its environment.'
show run backup -- sh -c 'echo "  running under $HOLDFAST_NAME, token $HOLDFAST_TOKEN"'

say '2. While somebody holds it, others are told so (exit status 75) or wait their turn.'
"$holdfast" run printer --label morning -- \
  sh -c "touch '$work/in'; while [ ! -e '$work/done' ]; do sleep 0.02; done" &
started+=($!)
until_true test -e "$work/in"
status=0
show run printer --wait 0 -- echo 'never printed' || status=$?
[[ $status -eq 75 ]] || untrue "exit status $status instead of 75"

say '3. Four processes line up for it; each is served once, in order of arrival.'
page() {
  # Two at a time would leave a mark: only one process can make the directory.
  mkdir "$work/inside" 2>/dev/null || echo two >>"$work/overlaps"
  echo "$1" >>"$work/pages"
  echo "$HOLDFAST_TOKEN" >>"$work/tokens"
  echo "  page $1 printed with token $HOLDFAST_TOKEN"
  sleep 0.3
  rmdir "$work/inside"
}
export -f page
export work
for n in 1 2 3 4; do
  "$holdfast" run printer --label "page $n" -- bash -c "page $n" &
  started+=($!)
  until_true queue_is "$n"
done
show ls
show show printer
touch "$work/done"
for pid in "${started[@]}"; do
  wait "$pid"
done
started=()

[[ ! -e $work/overlaps ]] || untrue 'two processes held the lock at once'
[[ $(paste -sd' ' "$work/pages") == '1 2 3 4' ]] || untrue 'not in order of arrival'
sort -nuc "$work/tokens" || untrue 'the tokens do not rise'
echo '  checked: never two at once, in order, each token larger than the one before'

say '4. A holder crashes (kill -9). Its lock passes on when its ttl of 2 s is over.'
"$holdfast" run printer --ttl 2s --label 'will crash' -- \
  sh -c "echo \$HOLDFAST_TOKEN >>'$work/tokens'; touch '$work/crash'; exec sleep 60" &
victim=$!
until_true test -e "$work/crash"
show ls
{ kill -KILL "$victim" && wait "$victim"; } 2>/dev/null || true
echo '  killed'
begin=$(date +%s%N)
show run printer --label heir -- bash -c 'page 5'
printf '  waited %d ms for the dead holder\n' $((($(date +%s%N) - begin) / 1000000))
[[ ! -e $work/overlaps ]] || untrue 'two processes held the lock at once'
sort -nuc "$work/tokens" || untrue 'the tokens do not rise'

[[ -z $("$holdfast" ls) ]] || untrue 'something is still locked'
say 'All released, nothing left. Next: holdfast run --help'
