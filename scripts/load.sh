#!/usr/bin/env bash
# Keeps a gentle pgbench load on the demo source for ever, also over the source's restarts. The password is in PGPASSWORD.
set -uo pipefail
source "$(dirname "$0")/settings.sh"

running=
trap '[[ -z $running ]] || kill "$running" 2>/dev/null; exit 0' TERM INT

while true; do
  "$THALWEG_PG_BIN/pgbench" --no-vacuum --rate="$THALWEG_DEMO_RATE" --client="$THALWEG_DEMO_CLIENTS" --time=3600 \
    --max-tries=10 --host="$THALWEG_SOURCE_HOST" --port="$THALWEG_SOURCE_PORT" --username=shop demo &
  running=$!
  wait "$running"
  sleep 2 &
  running=$!
  wait "$running"
done
