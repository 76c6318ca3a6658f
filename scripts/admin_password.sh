#!/usr/bin/env bash
# Gives the console's admin a new random password, prints it once, and renews the scripts' own token.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users daemons services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
step "set admin's password" "run 'make up' first: the store and the API must run" reset_admin_password
print_new_admin_password
