#!/usr/bin/env bash
# One line for each service, then one for each stream. Fails when something is down.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters daemons services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
status=0

line() { # NAME PID ADDRESS
  if [[ -n $2 ]]; then
    printf '✓ %-14s running   pid %-8s %s\n' "$1" "$2" "$3"
  else
    printf '✗ %-14s down      %-12s %s\n' "$1" "" "$3"
    status=1
  fi
}

services=(store redis engine api collector)
[[ $THALWEG_DEMO != pgbench ]] || services+=(source destination relay load)
for name in "${services[@]}"; do
  case $name in
    store | source | destination) address=$(cluster_host "$name"):$(cluster_port "$name") ;;
    relay) address=$THALWEG_RELAY_HOST:$THALWEG_RELAY_PORT ;;
    redis) address=$THALWEG_REDIS_HOST:$THALWEG_REDIS_PORT ;;
    engine) address=$THALWEG_ENGINE_URL ;;
    api) address=$THALWEG_API_URL ;;
    *) address= ;;
  esac
  line "$name" "$(service_pid "$name")" "$address"
done
if daemon_pid api >/dev/null && [[ -s $THALWEG_TOKEN_FILE ]]; then
  "$THALWEG_VENV/bin/thalweg" status || status=1
fi
exit "$status"
