#!/usr/bin/env bash
# Runs a command as on a slow machine: half of one core, and a disk that takes 50 ms for each flush. For suites of the release
# tree: what passes only where the machine is fast fails here. Journeys wait E2E_PATIENCE times as long as usual.
# Root only: the kernel counts the processor time (cgroups).
# usage: [FLUSH_SECONDS=0.05] [E2E_PATIENCE=4] scripts/slow_machine.sh COMMAND [ARGUMENT...]
set -euo pipefail
source "$(dirname "$0")/settings.sh"
source "$THALWEG_ROOT/scripts/lib/steps.sh"
(($#)) || { echo "usage: scripts/slow_machine.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
guarded "$0" "$@"

# Within each period of 100 ms, in microseconds.
period=100000
half=$((period / 2))

# Prints a new group of processes that together get half of a core.
make_group() {
  local group version2
  version2=$(findmnt --noheadings --output TARGET --types cgroup2 | head -n 1)
  if [[ -n $version2 ]] && grep -qw cpu "$version2/cgroup.controllers"; then
    echo +cpu >"$version2/cgroup.subtree_control"
    group=$version2/slow-$$
    mkdir "$group"
    echo "$half $period" >"$group/cpu.max"
  else
    group=$(findmnt --noheadings --output TARGET --types cgroup --options cpu | head -n 1)/slow-$$
    mkdir "$group"
    echo "$period" >"$group/cpu.cfs_period_us"
    echo "$half" >"$group/cpu.cfs_quota_us"
  fi
  echo "$group"
}

library=$THALWEG_BUILD/slow_disk.so
mkdir -p "$THALWEG_BUILD"
cc -O2 -shared -fPIC -o "$library" "$THALWEG_ROOT/backend/tests/rig/slow_disk.c" -ldl
seconds=$(mktemp)
chmod 644 "$seconds" # for PostgreSQL's user
group=$(make_group) || { echo "no group with a processor quota can be made here: be root, and mount the controller 'cpu'" >&2; exit 1; }
trap 'rm -f "$seconds"; rmdir "$group" || true' EXIT
echo "${FLUSH_SECONDS:-0.05}" >"$seconds"
export E2E_PATIENCE=${E2E_PATIENCE:-4}
LD_PRELOAD=$library SLOW_DISK_SECONDS=$seconds bash -c 'echo $$ >"$0/cgroup.procs" && exec taskset --cpu-list 0 "$@"' "$group" "$@"
