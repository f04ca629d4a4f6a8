#!/usr/bin/env bash
# ./dev lint [--fix] [--cheap] [--all]: what a machine can say about the sources, cheap checks first.
# --fix formats them before; --cheap leaves out clang-tidy, which takes a quarter of an hour for the
# whole product the first time; --all lets it read the tests too, which takes as long again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh

fix= cheap= product=--product
for option in "$@"; do
  case $option in
    --fix) fix=1 ;;
    --cheap) cheap=1 ;;
    --all) product= ;;
    *) fail "lint: there is no option '$option'; there are --fix, --cheap and --all" ;;
  esac
done

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cc')

say "clang-format"
if [[ -n $fix ]]; then
  clang-format -i "${sources[@]}"
else
  clang-format --dry-run -Werror "${sources[@]}" || fail "'./dev lint --fix' formats the sources"
fi

say "include layers"
python3 tools/check_layers_test.py
python3 tools/check_layers.py

say "paths"
tools/check_paths.sh

say "public headers, each alone"
python3 tools/check_headers.py

[[ -z $cheap ]] || exit 0
build_preset dev
say "clang-tidy"
python3 tools/run_tidy.py build/dev --jobs "$jobs" $product
