#!/usr/bin/env bash
# ./dev torture [--again] [--mutants] [ENGINE...]: the long form of `holdfast torture`, on the engines
# that the tests know (all, or those whose names match), one by one, and the tables of docs/proof.md
# made from it. What was done is kept in build/torture: a run that is stopped goes on where it was,
# --again begins anew. GRANTS, FAULTS, SECONDS_EACH bound each from below, MINUTES_EACH from above.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh

if [[ ${1:-} == --mutants ]]; then
  build_preset dev simulation_tests torture_tests
  exec tools/torture.py mutants build/dev
fi

reports=build/torture
if [[ ${1:-} == --again ]]; then
  rm -rf "$reports"
  shift
fi
build_preset dev torture_tests
mkdir -p "$reports"
minutes=${MINUTES_EACH:-30}
export HOLDFAST_TORTURE_REPORTS=$PWD/$reports HOLDFAST_TORTURE_SECONDS=${SECONDS_EACH:-60}
export HOLDFAST_TORTURE_GRANTS=${GRANTS:-100000} HOLDFAST_TORTURE_FAULTS=${FAULTS:-1000}
export HOLDFAST_TORTURE_AT_MOST=${minutes}m HOLDFAST_TORTURE_LIMIT=$((minutes * 60 + 300))
test=FindsNoViolation
mapfile -t engines < <(build/dev/tests/torture_tests --gtest_filter="*Torture.$test/*" \
  --gtest_list_tests | sed -n "s#^ *$test/\([a-z0-9_]*\).*#\1#p")
status=0
for engine in "${engines[@]}"; do
  chosen=$(($# == 0))
  for word in "$@"; do [[ $engine == *"$word"* ]] && chosen=1; done
  ((chosen)) || continue
  if [[ -f $reports/$engine.json ]]; then
    say "$engine: done before; $reports/$engine.json"
    continue
  fi
  say "$engine"
  build/dev/tests/torture_tests --gtest_brief=1 --gtest_filter="*Torture.$test/$engine" || status=$?
  # At once: a run takes hours. One at a time, should two run beside each other.
  if compgen -G "$reports/*.json" >/dev/null; then
    flock "$reports" tools/torture.py report "$reports"
  fi
done
exit "$status"
