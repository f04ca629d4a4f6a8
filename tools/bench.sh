#!/usr/bin/env bash
# ./dev bench [--write] [--peers|--curves|--all] [ENGINE...] [SCENARIO...]: the scenarios beside their
# baselines, other people's locks (bench/peers), growth; see tools/bench.py.
# --write puts what was measured into docs/benchmarks.md. Leave the machine alone meanwhile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
build_preset dev holdfast_command
build_preset dev bench_baselines
build_preset dev bench_core
arguments=()
for argument in "$@"; do
  [[ $argument == --write ]] && arguments+=(--write docs/benchmarks.md) || arguments+=("$argument")
done
tools/bench.py build/dev "${arguments[@]}"
if [[ $# -eq 0 ]]; then
  say "the pieces, without a store"
  build/dev/bench/bench_core --benchmark_min_time=0.2
fi
