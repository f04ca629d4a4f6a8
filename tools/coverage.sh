#!/usr/bin/env bash
# ./dev coverage [PATTERN]: which lines of src/ the tests reach. Needs a build of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
build_preset coverage
find build/coverage -name '*.gcda' -delete
# Nothing else tells what was not reached than tests that pass: their outcome matters little here.
ctest --test-dir build/coverage --parallel "$jobs" ${1:+--tests-regex "$1"} --output-on-failure >&2 ||
  say "some tests failed; what they reached counts all the same"
tools/coverage.py build/coverage
