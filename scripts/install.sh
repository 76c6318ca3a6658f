#!/usr/bin/env bash
# Installs the Debian packages that are missing. Changes nothing else. Node.js is not among them: Debian 12's is too old
# for the console's build tool, so scripts/lib/node.sh takes the machine's own where it fits, else a pinned wheel.
# usage: scripts/install.sh [GROUP...]      (default: build extension runtime)
set -euo pipefail
source "$(dirname "$0")/settings.sh"
source "$THALWEG_ROOT/scripts/lib/steps.sh"

packages_of() {
  case $1 in
    build) echo g++ cmake ninja-build ccache pkg-config libpq-dev libssl-dev libxxhash-dev liblz4-dev libzstd-dev libisal-dev \
                nlohmann-json3-dev libboost1.81-dev libspdlog-dev libfmt-dev libgtest-dev libbenchmark-dev \
                postgresql-server-dev-15 python3 python3-venv ;;
    extension) echo gcc make libc6-dev postgresql-server-dev-15 ;;
    engine) echo libpq5 libssl3 libxxhash0 liblz4-1 libzstd1 libspdlog1.10 libfmt9 curl procps ;;
    postgresql) echo postgresql-15 procps util-linux ;;
    redis) echo redis-server util-linux ;;
    control) echo python3 python3-venv postgresql-client-15 curl procps util-linux ;;
    runtime) packages_of postgresql && packages_of redis && packages_of control && packages_of engine ;;
    system) echo iproute2 openssl ;;
    test) echo pgbouncer chromium clang-19 libclang-rt-19-dev clang-format-19 shellcheck systemd ;;
    bench) echo pgcopydb valgrind ;;
    *) echo "unknown group '$1': build, extension, runtime (postgresql, redis, control, engine), system, test or bench" >&2; return 1 ;;
  esac
}

is_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# Debian starts what it installs. Ours run under .thalweg/ on their own ports, so nothing else may be created or started.
install_packages() {
  local policy=/usr/sbin/policy-rc.d cluster_conf=/etc/postgresql-common/createcluster.d/thalweg.conf
  if ! is_installed postgresql-15; then
    as_root mkdir -p "${cluster_conf%/*}"
    echo 'create_main_cluster = false' | as_root tee "$cluster_conf" >/dev/null
  fi
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

(($#)) || set -- build extension runtime
missing=()
for group in "$@"; do
  packages=$(packages_of "$group")
  for package in $packages; do
    is_installed "$package" || missing+=("$package")
  done
done
if ((${#missing[@]})); then
  echo "missing: ${missing[*]}"
  install_packages "${missing[@]}"
  echo "note: installed ${#missing[@]} packages"
fi
