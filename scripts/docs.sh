#!/usr/bin/env bash
# Writes the reference pages that are made from contracts. With --check: only says whether they are stale.
set -euo pipefail
source "$(dirname "$0")/settings.sh"

exec python3 "$THALWEG_ROOT/scripts/docs" "$@"
