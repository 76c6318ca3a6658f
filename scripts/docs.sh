#!/usr/bin/env bash
# Writes the reference pages that are made from contracts and from code. With --check: says which are stale.
set -euo pipefail
source "$(dirname "$0")/settings.sh"

[[ -x $THALWEG_VENV/bin/python ]] || "$THALWEG_ROOT/scripts/build.sh" venv
python3 "$THALWEG_ROOT/scripts/docs" "$@"
"$THALWEG_VENV/bin/python" "$THALWEG_ROOT/backend/scripts/export_cli.py" "$@"
"$THALWEG_VENV/bin/python" "$THALWEG_ROOT/backend/scripts/export_findings.py" "$@"
