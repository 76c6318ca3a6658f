#!/usr/bin/env bash
# Switches the second factor of the console's admin off: for somebody who has lost the device and the recovery codes.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users daemons services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
step "reset admin's second factor" "run 'make up' first: the store must run" run_admin reset-second-factor
