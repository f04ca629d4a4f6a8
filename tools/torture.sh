#!/usr/bin/env bash
# ./dev torture [--again] [--mutants] [ENGINE...]: the long form of `holdfast torture`, on the engines
# that the tests know (all, or those whose names match), one by one, and the tables of docs/proof.md
# made from it.
#
# An engine is tortured in runs of a few minutes until they have GRANTS and FAULTS together. What was
# done is kept in build/torture: what is stopped goes on with the next run, --again begins anew, for
# the engines named. MINUTES_EACH bounds what is done for each now, MINUTES_A_RUN how much a stop costs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh

if [[ ${1:-} == --mutants ]]; then
  build_preset dev simulation_tests torture_tests
  exec tools/torture.py mutants build/dev
fi

again=0
if [[ ${1:-} == --again ]]; then
  again=1
  shift
fi
build_preset dev torture_tests
reports=build/torture
run=${MINUTES_A_RUN:-4}
end_of() { echo $((SECONDS + ${MINUTES_EACH:-60} * 60)); }
export HOLDFAST_TORTURE_SECONDS=20 HOLDFAST_TORTURE_AT_MOST=${run}m
export HOLDFAST_TORTURE_LIMIT=$((run * 60 + 300))
test=FindsNoViolation

# One run for what an engine still lacks; fails if there was a violation.
torture() {
  local engine=$1 grants=$2 faults=$3 status=0
  local new=$reports/$engine/new
  ((faults > 0)) || faults=$((grants / 1000 + 1))  # few, so that there is time for the grants
  rm -rf "$new" && mkdir -p "$new"
  HOLDFAST_TORTURE_REPORTS=$PWD/$new HOLDFAST_TORTURE_GRANTS=$grants HOLDFAST_TORTURE_FAULTS=$faults \
    build/dev/tests/torture_tests --gtest_brief=1 --gtest_filter="*Torture.$test/$engine" >&2 || status=$?
  if [[ -f $new/$engine.json ]]; then
    local number
    number=$(($(find "$reports/$engine" -maxdepth 1 -name '*.json' | wc -l) + 1))
    mv "$new/$engine.json" "$reports/$engine/$number.json"
    if [[ -f $new/$engine.html ]]; then
      mv "$new/$engine.html" "$reports/$engine/$number.html"
      say "$engine: VIOLATED; $reports/$engine/$number.html"
    fi
    # At once: the whole takes hours. One at a time, should two run beside each other.
    flock "$reports" tools/torture.py report "$reports"
  elif ((status == 0)); then
    say "$engine: skipped"
    return 2
  fi
  rm -rf "$new"
  return "$status"
}

mapfile -t engines < <(build/dev/tests/torture_tests --gtest_filter="*Torture.$test/*" \
  --gtest_list_tests | sed -n "s#^ *$test/\([a-z0-9_]*\).*#\1#p")
# By a word: the engine of that name, or all whose names contain it.
is_chosen() {
  local engine=$1 word
  (($# > 1)) || return 0
  for word in "${@:2}"; do
    [[ $engine == "$word" ]] && return 0
    [[ " ${engines[*]} " != *" $word "* && $engine == *"$word"* ]] && return 0
  done
  return 1
}
failed=0
for engine in "${engines[@]}"; do
  is_chosen "$engine" "$@" || continue
  if ((again)); then rm -rf "${reports:?}/$engine"; fi
  mkdir -p "$reports/$engine"
  end=$(end_of)
  while read -r grants faults < <(tools/torture.py missing "$reports/$engine") &&
    ((grants + faults > 0)) && ((SECONDS < end)); do
    say "$engine: $grants grants and $faults faults to go"
    status=0
    torture "$engine" "$grants" "$faults" || status=$?
    ((status == 0)) && continue
    ((status == 2)) || failed=1
    break
  done
done
exit "$failed"
