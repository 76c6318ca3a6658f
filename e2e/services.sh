#!/usr/bin/env bash
# Checks the promises of 'make up' about its services, on the stack that run.sh has started: none runs with root's
# rights, and each that is killed comes again by itself. run.sh's environment says which stack.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/settings.sh"
for part in steps secrets users clusters redis daemons demo services; do
  # shellcheck source=/dev/null
  source "$root/scripts/lib/$part.sh"
done

came_again() {
  local pid
  pid=$(service_pid "$1") && [[ -n $pid && $pid != "$2" ]]
}

for name in store redis engine api collector source destination relay load; do
  pid=$(service_pid "$name")
  [[ -n $pid ]] || { echo "$name does not run" >&2; exit 1; }
  [[ $(stat --format=%u "/proc/$pid") != 0 ]] || { echo "$name runs as root" >&2; exit 1; }
  kill -KILL "$pid"
  wait_until 120 "$name comes again after it was killed" came_again "$name" "$pid"
done
# Its store recovers from the kill: PostgreSQL flushes every file of the cluster first, one by one.
wait_until 600 "the API is ready" answers "$THALWEG_API_URL/readyz"
run_rest wait-replicating "$DEMO_STREAM" 600
# A demo of an older version was registered with its destination's own address: 'make up' leads it over the relay.
secret destination-thalweg | run_rest move-database "$THALWEG_RELAY_HOST" "$THALWEG_RELAY_PORT" demo thalweg \
  "$THALWEG_DESTINATION_HOST" "$THALWEG_DESTINATION_PORT" >/dev/null
lead_over_relay | grep --quiet "warehouse is reached at $THALWEG_RELAY_HOST:$THALWEG_RELAY_PORT"
run_rest wait-replicating "$DEMO_STREAM" 600
echo "every service runs without root's rights, and came again after it was killed"
