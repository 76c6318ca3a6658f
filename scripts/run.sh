#!/usr/bin/env bash
# Runs one service in the foreground: what containers and systemd's units start.
# usage: scripts/run.sh store|source|destination|redis|engine|api|collector|relay|load|demo-data|setup
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters redis daemons demo services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done

case ${1:-} in
  demo-data) make_demo_source && make_demo_destination ;;
  setup) exec "$THALWEG_ROOT/scripts/setup.sh" ;;
  store | source | destination | redis | engine | api | collector | relay | load)
    become=() command=()
    make_service_users
    service_command "$1"
    becoming "$(service_user "$1")"
    exec "${become[@]}" "${command[@]}" ;;
  *) sed -n '2,3p' "$0" >&2 && exit 2 ;;
esac
