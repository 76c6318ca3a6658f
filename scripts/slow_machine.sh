#!/usr/bin/env bash
# Runs a command as on a slow machine: half of one core, and a disk that takes 50 ms for each flush. For suites of the release
# tree: what passes only where the machine is fast fails here.
# usage: [FLUSH_SECONDS=0.05] scripts/slow_machine.sh COMMAND [ARGUMENT...]
set -euo pipefail
source "$(dirname "$0")/settings.sh"
source "$THALWEG_ROOT/scripts/lib/steps.sh"
(($#)) || { echo "usage: scripts/slow_machine.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
guarded "$0" "$@" # which ends the spinner too

library=$THALWEG_BUILD/slow_disk.so
mkdir -p "$THALWEG_BUILD"
cc -O2 -shared -fPIC -o "$library" "$THALWEG_ROOT/backend/tests/rig/slow_disk.c" -ldl
seconds=$(mktemp)
chmod 644 "$seconds" # for PostgreSQL's user
trap 'rm -f "$seconds"' EXIT
echo "${FLUSH_SECONDS:-0.05}" >"$seconds"
taskset --cpu-list 0 sh -c 'while :; do :; done' &
env LD_PRELOAD="$library" SLOW_DISK_SECONDS="$seconds" taskset --cpu-list 0 "$@"
