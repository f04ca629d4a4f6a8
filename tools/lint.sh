#!/usr/bin/env bash
# ./dev lint [--fix]: what a machine can say about the sources. --fix formats them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cc')

say "clang-format"
if [[ ${1:-} == --fix ]]; then
  clang-format -i "${sources[@]}"
else
  clang-format --dry-run -Werror "${sources[@]}"
fi
