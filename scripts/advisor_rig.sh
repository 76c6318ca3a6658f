#!/usr/bin/env bash
# Makes each stage of a path slow by a real cause and asks the advisor for it; writes docs/results/advisor.md.
# CAUSES='trigger or index' runs some of them only, and writes nothing.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
source "$THALWEG_ROOT/scripts/lib/builds.sh"
THALWEG_LOCK=requirements-dev.lock build_venv
build_engine release thalwegd

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
cd "$THALWEG_ROOT/backend" || exit 1
status=0
THALWEG_RIG_RESULTS=$lines THALWEG_RIG_RECORDINGS=${THALWEG_RIG_RECORDINGS:-} \
  "$THALWEG_VENV/bin/python" -m pytest tests/rig/rig_advisor.py -n 0 -q -rfE --tb=line -s -k "${CAUSES:-}" | grep -E '^\.*(HIT|MISS)|^(FAILED|ERROR)|passed|failed' ||
  status=1
[[ -n ${CAUSES:-} ]] || "$THALWEG_VENV/bin/python" -m tests.rig.results "$lines" || status=1
exit "$status"
