#!/usr/bin/env bash
# ./dev bench [SCENARIO...]: all scenarios on the embedded store, then the programs in bench/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
fail "there is no benchmark yet"
