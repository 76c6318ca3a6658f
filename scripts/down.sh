#!/usr/bin/env bash
# Stops what 'make up' started, in the order in which nothing is left waiting. Data stays.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters daemons; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
only_one "$0" "$@"
logs="read the log above; 'make down' again goes on where it stopped"

step "stop load" "$logs" stop_daemon load 10
step "stop collector" "$logs" stop_daemon collector 15
step "stop api" "$logs" stop_daemon api 15
step "stop engine" "$logs" stop_daemon engine 30
step "stop relay" "$logs" stop_daemon relay 10
for cluster in source destination store; do
  step "stop $cluster" "$logs" stop_cluster "$cluster"
done
step "stop redis" "$logs" stop_daemon redis 10
