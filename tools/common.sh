# Shared by ./dev and the scripts beside this one; sourced from the root of the tree.
# shellcheck shell=bash

jobs=${JOBS:-$(nproc)}

# For people: one line that stands out. To stderr, so that a command's own output can be piped.
say() { printf '%s== %s%s\n' "${bold:-}" "$*" "${plain:-}" >&2; }

fail() {
  printf 'dev: %s\n' "$*" >&2
  exit 1
}

if [[ -t 2 ]]; then
  bold=$'\e[1m' plain=$'\e[0m'
fi

# What the programs of a build run under; see use_preset.
runner=()

# GCC 12's thread sanitizer cannot cope with the address randomization of newer kernels.
use_preset() {
  runner=()
  if [[ $1 == tsan ]] && setarch -R true 2>/dev/null; then
    runner=(setarch -R)
  fi
}

# Configures where needed and builds: build_preset PRESET [TARGET...]
# Later changes to CMake files are noticed by the build itself.
build_preset() {
  local preset=$1
  shift
  use_preset "$preset"
  say "building build/$preset"
  if [[ ! -f build/$preset/build.ninja || CMakePresets.json -nt build/$preset/build.ninja ]]; then
    cmake --preset "$preset" >&2
  fi
  "${runner[@]}" cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"} >&2
}
