#!/usr/bin/env bash
# Runs suites, then builds trees of the engine, then runs suites that need them, on the processor time that others leave.
# Called by scripts/test.sh.
# usage: setsid scripts/beside.sh 'SUITE...' 'TREE...' 'SUITE...'
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps node builds suites; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
read -ra suites <<<"$1"
read -ra trees <<<"$2"
read -ra after_trees <<<"$3"
chrt --idle --pid 0 $$
# To Linux a session is a group that gets its share whatever runs in it, so this one's share is the smallest.
[[ ! -w /proc/self/autogroup ]] || echo 19 >/proc/self/autogroup

for suite in "${suites[@]}"; do
  execute_suite "$suite"
done
for tree in "${trees[@]}"; do
  build_engine "$tree" || break # the suite that wants it builds again, and says why not
done >"$THALWEG_LOG/build-ahead.log" 2>&1
for suite in "${after_trees[@]}"; do
  execute_suite "$suite"
done
