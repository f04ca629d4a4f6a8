#!/usr/bin/env bash
# No tracked file may name a folder of the machine it was written on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Split so that it does not find itself.
pattern='(^|[^A-Za-z0-9_.$}~*/-])/(home|root|work|Users|mnt)'/'[A-Za-z0-9]'
if git grep -nIE "$pattern" -- .; then
  echo "the lines above name folders of one machine" >&2
  exit 1
fi
