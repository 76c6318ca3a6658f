#!/usr/bin/env bash
# Keeps a gentle pgbench load on the demo source for ever, also over the source's restarts. The password is in PGPASSWORD.
# The console's lab may want another rate for a while: it writes it to lab.load at the source, which is read every two seconds.
set -uo pipefail
source "$(dirname "$0")/settings.sh"
export PGHOST=$THALWEG_SOURCE_HOST PGPORT=$THALWEG_SOURCE_PORT PGUSER=shop PGDATABASE=demo PGCONNECT_TIMEOUT=2

rate=$THALWEG_DEMO_RATE
load=
pause=
trap 'kill ${load:-} ${pause:-} 2>/dev/null; exit 0' TERM INT

# Transactions a second. Fails when the source does not answer: then the rate stays.
wanted_rate() {
  "$THALWEG_PG_BIN/psql" --no-psqlrc --quiet --tuples-only --no-align \
    --command="SELECT coalesce((SELECT rate FROM lab.load WHERE until > now()), $THALWEG_DEMO_RATE)"
}

# pgbench's own transactions, and up to fifty a second that change an article's stock: each of them is dear once the lab has
# dropped the index at the destination, and a long queue of them would outlast the tour.
start_load() {
  local clients=$THALWEG_DEMO_CLIENTS stock=$((rate < 100 ? (rate + 1) / 2 : 50))
  # A few sessions cannot commit many transactions a second.
  ((rate <= 200)) || clients=$((clients * 4))
  setpriv --pdeathsig TERM -- "$THALWEG_PG_BIN/pgbench" --no-vacuum --rate="$rate" --client="$clients" --time=3600 --max-tries=10 \
    --builtin="tpcb-like@$((rate - stock))" --file="$THALWEG_ROOT/scripts/stock-load.sql@$stock" &
  load=$!
}

stop_load() {
  kill "$load" 2>/dev/null
  wait "$load"
  load=
}

while true; do
  if wanted=$(wanted_rate) && [[ $wanted != "$rate" ]]; then
    [[ -z $load ]] || stop_load
    rate=$wanted
  fi
  [[ -z $load ]] || kill -0 "$load" 2>/dev/null || stop_load
  [[ -n $load ]] || ((rate == 0)) || start_load
  sleep 2 &
  pause=$!
  wait "$pause"
done
