#!/usr/bin/env bash
# Packs what another host needs to run an engine: the built thalwegd without its debugging information, its systemd unit, and
# the scripts that install it there. It is unpacked at /opt/thalweg. usage: scripts/engine_bundle.sh FILE.tar.gz
set -euo pipefail
source "$(dirname "$0")/settings.sh"
engine=${THALWEG_ENGINE_BINARY:-$THALWEG_BUILD/release/src/daemon/thalwegd}
if (($# != 1)); then
  sed -n '2,3p' "$0" >&2
  exit 2
fi
if [[ ! -x $engine ]]; then
  echo "$engine is missing. Build it first: scripts/install.sh build && scripts/build.sh engine" >&2
  exit 1
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory"/{bin,scripts/lib,deploy/systemd}
strip --strip-debug -o "$directory/bin/thalwegd" "$engine"
cp "$THALWEG_ROOT"/scripts/{install,install_engine,settings}.sh "$directory/scripts/"
cp "$THALWEG_ROOT/scripts/lib/steps.sh" "$directory/scripts/lib/"
cp "$THALWEG_ROOT"/deploy/systemd/{README.md,thalweg-engine.service,thalweg-engine-tls.conf} "$directory/deploy/systemd/"
chmod -R u=rwX,go=rX "$directory"
tar --owner=root:0 --group=root:0 --gzip -cf "$1" -C "$directory" .
echo "$1: $("$engine" --version)"
