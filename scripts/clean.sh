#!/usr/bin/env bash
# Removes what was built or downloaded. The data, the secrets and the settings under .thalweg stay.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
cd "$THALWEG_ROOT"
rm -rf "$THALWEG_BUILD" "$THALWEG_VENV" .thalweg/node-venv .thalweg/help-venv .thalweg/test-results frontend/node_modules frontend/dist \
  e2e/node_modules engine/test/servers/node_modules e2e/test-results e2e/playwright-report
echo "removed builds, virtual environments and node modules; .thalweg keeps its data"
