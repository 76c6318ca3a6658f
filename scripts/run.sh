#!/usr/bin/env bash
# Runs one service in the foreground: what containers start, and what 'make up' puts into the background.
# usage: scripts/run.sh store|source|destination|redis|engine|api|collector|load|setup
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets clusters redis daemons demo services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done

run_cluster() {
  init_cluster "$1"
  write_cluster_settings "$1"
  exec "$THALWEG_PG_BIN/postgres" -D "$(clusters_directory)/$1"
}

case ${1:-} in
  store | source | destination) run_cluster "$1" ;;
  redis) write_redis_configuration && exec redis-server "$THALWEG_HOME/redis/redis.conf" ;;
  engine | api | collector) "run_$1" ;;
  load) exec "$THALWEG_ROOT/scripts/load.sh" ;;
  setup) exec "$THALWEG_ROOT/scripts/setup.sh" ;;
  *) sed -n '2,3p' "$0" >&2 && exit 2 ;;
esac
