#!/usr/bin/env bash
# Brings running services together: migrations, admin, engine, and the demo stream where there is a demo. Does only what is
# missing. 'make up' does the same step by step; this is for containers, where each service starts by itself.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters redis daemons demo services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done

step "wait for store" "read the log of the service store" wait_until 60 "the store answers" cluster_accepts store
step "migrate store" "read the message above" migrate_store
step "wait for API" "read the log of the service api" wait_until 60 "the API answers" answers "$THALWEG_API_URL/healthz"
step "make admin" "'make admin-password' gives a new password" make_admin
step "enrol engine" "read the log of the service engine" enrol_engine
if [[ $THALWEG_DEMO == pgbench ]]; then
  step "lead demo over relay" "correct the database's address in the console" lead_over_relay
  step "make demo stream" "open the console: it names the reason and the cure" make_demo_stream
fi
printf '\n  console    http://127.0.0.1:%s\n  user       admin\n' "$THALWEG_API_PORT"
print_new_admin_password
