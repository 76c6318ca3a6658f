#!/usr/bin/env bash
# Runs suites on the processor time that others leave. Called by scripts/test.sh.
# usage: setsid scripts/beside.sh SUITE...
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds suites; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
chrt --idle --pid 0 $$
# To Linux a session is a group that gets its share whatever runs in it, so this one's share is the smallest.
[[ ! -w /proc/self/autogroup ]] || echo 19 >/proc/self/autogroup

for suite in "$@"; do
  execute_suite "$suite"
done
