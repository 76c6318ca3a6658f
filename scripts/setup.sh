#!/usr/bin/env bash
# Brings running services together: roles, migrations, admin, engine, demo stream. Does only what is missing.
# 'make up' does the same step by step; this is for containers, where each service starts by itself.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters redis daemons demo services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done

cluster_answers() { sql "$1" postgres <<<'SELECT 1'; }
wait_for_clusters() {
  local name
  for name in store source destination; do
    wait_until 60 "cluster $name answers" cluster_answers "$name"
  done
}

step "wait for databases" "read the logs of store, demo-source and demo-destination" wait_for_clusters
step "migrate store" "read the message above" migrate_store
step "prepare demo source" "read the message above" make_demo_source
step "prepare demo destination" "read the message above" make_demo_destination
step "wait for API" "read the log of the service api" wait_until 60 "the API answers" answers "$THALWEG_API_URL/healthz"
step "make admin" "'make admin-password' gives a new password" make_admin
step "enrol engine" "read the log of the service engine" enrol_engine
step "make demo stream" "open the console: it names the reason and the cure" make_demo_stream
printf '\n  console    http://127.0.0.1:%s\n  user       admin\n' "$THALWEG_API_PORT"
print_new_admin_password
