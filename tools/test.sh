#!/usr/bin/env bash
# ./dev test: quick things first, so that a mistake shows early; stops at the first stage that
# fails. Which tests are long and which run alone: tests/README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
exec </dev/null 2>&1 # no test may depend on a terminal; one stream keeps the order

# The suites that run under a sanitizer; on request also every promise.
sanitized=(unit engines simulation)

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# Tests fork while threads run, and mean to.
export TSAN_OPTIONS=${TSAN_OPTIONS:-die_after_fork=0:second_deadlock_stack=1}

# run_ctest PRESET ARGUMENT...
run_ctest() {
  local preset=$1
  shift
  use_preset "$preset"
  say "ctest build/$preset $*"
  # Most tests wait for something most of the time.
  local arguments=(--test-dir "build/$preset" --output-on-failure --parallel $((3 * jobs)))
  "${runner[@]}" ctest "${arguments[@]}" "$@" || {
    tools/failed_tests.py "build/$preset"
    return 1
  }
}

# stage NAME COMMAND...: says how long it took, ends everything if it failed.
stage() {
  local name=$1 started=$SECONDS
  shift
  say "stage: $name"
  # Not `if "$@"`, which would switch errexit off inside the function that is called.
  # shellcheck disable=SC2064
  trap "fail 'FAILED: $name'" EXIT
  "$@"
  trap - EXIT
  say "passed: $name, $((SECONDS - started)) s"
}

# On the embedded engines. For a server's engine:
# cmake --preset asan -DHOLDFAST_ENGINES=mysql, then ./dev test --asan mysql
sanitizer() {
  local preset=$1 labels
  shift
  build_preset "$preset" "${sanitized[@]/%/_tests}"
  labels=$(IFS='|' && echo "${sanitized[*]}")
  export HOLDFAST_QUICK=1 # what repeats itself has done so without a sanitizer
  run_ctest "$preset" --label-regex "^($labels)\$" --no-tests=error "$@"
}

everything() {
  stage build build_preset dev
  stage tests run_ctest dev --label-exclude '^long$' --no-tests=error
  stage lint tools/lint.sh --cheap
  stage fuzzing tools/fuzz.py --seconds 3
  stage 'long tests' run_ctest dev --label-regex '^long$'
  stage 'address and undefined-behaviour sanitizers' sanitizer asan --label-exclude '^long$'
  stage 'thread sanitizer' sanitizer tsan --label-exclude '^long$'
}

mode=all
selection=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --quick | --asan | --tsan) mode=${1#--} ;;
    -*) fail "test: there is no option '$1'; there are --quick, --asan and --tsan" ;;
    *) selection=(--tests-regex "$1" --no-tests=error) ;;
  esac
  shift
done

started=$SECONDS
case $mode in
  quick)
    export HOLDFAST_QUICK=1 # suites that repeat themselves do so less often
    stage build build_preset dev
    # What needs no server and compiles nothing; a pattern may ask for what does.
    servers='[Mm]ysql|[Mm]ariadb|[Pp]ostgres|[Rr]edis|[Rr]edlock|[Zz]ookeeper|[Ee]tcd|Galera'
    if [[ ${#selection[@]} -gt 0 ]]; then
      selection+=(--label-exclude '^long$')
    else
      selection=(--exclude-regex "$servers" --label-exclude '^(long|torture|docs)$')
    fi
    stage 'quick tests' run_ctest dev "${selection[@]}"
    ;;
  asan | tsan)
    sanitized+=(conformance)
    stage "$mode" sanitizer "$mode" "${selection[@]}"
    ;;
  *)
    if [[ ${#selection[@]} -gt 0 ]]; then
      stage build build_preset dev
      stage tests run_ctest dev "${selection[@]}"
    else
      everything
    fi
    ;;
esac
say "all passed, $((SECONDS - started)) s"
