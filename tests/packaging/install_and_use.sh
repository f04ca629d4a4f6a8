#!/usr/bin/env bash
# Installs a build into an empty folder and uses it as a stranger would, by CMake and by pkg-config.
# usage: install_and_use.sh BUILD_DIR CXX
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 cxx=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
stage=$place/stage

cmake --install "$build" --prefix "$stage" >/dev/null

echo "find_package(holdfast)"
cmake -G Ninja -S "$here/consumer" -B "$place/by_cmake" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_PREFIX_PATH="$stage" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >/dev/null
cmake --build "$place/by_cmake"
"$place/by_cmake/consumer"

echo "pkg-config holdfast"
PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name holdfast.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # words are what pkg-config gives
"$cxx" -std=c++20 "$here/consumer/main.cc" -o "$place/by_pkg_config" \
  $(pkg-config --cflags --libs holdfast)
"$place/by_pkg_config"

echo "the command and its completions"
"$stage/bin/holdfast" --version
if [[ -d $here/../../apps/holdfast/completions ]]; then
  bash -n "$stage/share/bash-completion/completions/holdfast"
  test -s "$stage/share/zsh/site-functions/_holdfast"
fi
