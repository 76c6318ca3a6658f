#!/usr/bin/env bash
# One line for each service, then one for each stream. Fails when something is down.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets clusters daemons services; do
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

cluster_pid() { cluster_is_running "$1" && as_pg head -n 1 "$(clusters_directory)/$1/postmaster.pid"; }

clusters=(store)
daemons=(redis engine api collector)
if [[ $THALWEG_DEMO == pgbench ]]; then
  clusters+=(source destination)
  daemons+=(load)
fi
for name in "${clusters[@]}"; do
  line "$name" "$(cluster_pid "$name")" "$(cluster_host "$name"):$(cluster_port "$name")"
done
for name in "${daemons[@]}"; do
  case $name in
    redis) address=$THALWEG_REDIS_HOST:$THALWEG_REDIS_PORT ;;
    engine) address=$THALWEG_ENGINE_URL ;;
    api) address=$THALWEG_API_URL ;;
    *) address= ;;
  esac
  line "$name" "$(daemon_pid "$name")" "$address"
done
if daemon_pid api >/dev/null && [[ -s $THALWEG_TOKEN_FILE ]]; then
  "$THALWEG_VENV/bin/thalweg" status || status=1
fi
exit "$status"
