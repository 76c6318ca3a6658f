#!/usr/bin/env bash
# Starts the store alone, runs COMMAND as its superuser by PGHOST, PGPORT, PGUSER and PGPASSWORD, and stops the store again.
# Fails as COMMAND does, and without having run it where the store does not start or runs already.
# usage: scripts/with_store.sh COMMAND...
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters daemons; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
(($# > 0)) || { sed -n '4p' "$0" >&2 && exit 2; }
only_one "$0" "$@"

start_store() {
  write_cluster_settings store
  as_pg "$THALWEG_PG_BIN/pg_ctl" --pgdata="$(clusters_directory)/store" --wait start
}

stop_store() { as_pg "$THALWEG_PG_BIN/pg_ctl" --pgdata="$(clusters_directory)/store" --mode=fast --wait stop; }

if cluster_accepts store; then
  echo "The store runs already, and its services may use it: run 'make down' first." >&2
  exit 1
fi
step "start store" "run 'make up' first where there is no store yet" start_store
trap "step 'stop store' \"run 'make down'\" stop_store" EXIT

PGPASSWORD=$(secret store-superuser)
export PGHOST=$THALWEG_STORE_HOST PGPORT=$THALWEG_STORE_PORT PGUSER=postgres PGPASSWORD
"$@"
