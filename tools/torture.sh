#!/usr/bin/env bash
# ./dev torture [--mutants] [ENGINE...]: the long form of `holdfast torture`, on the engines that the
# tests know (all, or those whose names match), and the tables of docs/proof.md made from it.
# GRANTS, FAULTS, SECONDS_EACH bound a run from below.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh

if [[ ${1:-} == --mutants ]]; then
  build_preset dev simulation_tests torture_tests
  exec tools/torture.py mutants build/dev
fi

build_preset dev torture_tests
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
export HOLDFAST_TORTURE_REPORTS=$reports HOLDFAST_TORTURE_SECONDS=${SECONDS_EACH:-60}
export HOLDFAST_TORTURE_GRANTS=${GRANTS:-100000} HOLDFAST_TORTURE_FAULTS=${FAULTS:-1000}
export HOLDFAST_TORTURE_LIMIT=${LIMIT_EACH:-7200}
status=0
for engine in "${@:-}"; do
  build/dev/tests/torture_tests --gtest_filter="Torture.*/*${engine}*:/Torture.*/*${engine}*" || status=$?
done
tools/torture.py report "$reports"
exit "$status"
