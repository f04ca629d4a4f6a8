#!/usr/bin/env bash
# Installs the Debian packages that the build, the tests and the linters need and this machine
# lacks. Costs a moment and changes nothing when all are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh

packages=(
  # build
  g++ cmake ninja-build ccache pkg-config git
  # the library and the command
  libboost1.81-dev libboost-json1.81-dev libexpected-dev libcli11-dev libsqlite3-dev
  libmariadb-dev
  libssl-dev libpq-dev
  libzookeeper-mt-dev libnghttp2-dev
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev python3 sqlite3 procps bindfs zsh faketime
  mariadb-server mariadb-client galera-4 rsync
  postgresql pgbouncer
  redis-server redis-sentinel openssl
  zookeeper python3-kazoo libcurator-recipes-java default-jdk-headless
  etcd-server etcd-client
  # lint
  clang-tidy clang-format
  # fuzzing
  clang libclang-rt-14-dev
)

if ! command -v dpkg-query >/dev/null; then
  say "this is not Debian: if the build fails, install what these packages hold: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null ||
    fail "these packages are missing; install them as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

say "installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
"${apt[@]}" update >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
