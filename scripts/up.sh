#!/usr/bin/env bash
# Installs what is missing, builds what is out of date, starts what is down or runs older code, and makes the demo.
# Changes nothing else.
set -euo pipefail
source "$(dirname "$0")/settings.sh"
for part in steps secrets users clusters redis daemons demo services; do
  # shellcheck source=/dev/null
  source "$THALWEG_ROOT/scripts/lib/$part.sh"
done
logs="read the log above, then run 'make up' again"

only_one "$0" "$@"

if [[ ${THALWEG_SKIP_BUILD:-} != 1 ]]; then
  step "install packages" "run apt-get by hand and read what it says" "$THALWEG_ROOT/scripts/install.sh" build extension runtime
  "$THALWEG_ROOT/scripts/build.sh"
fi
step "make service users" "read the log above" make_service_users
[[ $(services_directory) == "$THALWEG_HOME" ]] ||
  echo "  the services' users cannot enter $THALWEG_HOME: their data lie in $(services_directory)"
step "stop what is older" "$logs" stop_older
step "place the code" "read the log above" copy_code
step "start store" "$logs" start_cluster store
step "start redis" "$logs; port $THALWEG_REDIS_PORT must be free" start_redis
step "migrate store" "$logs" migrate_store
step "start engine" "$logs; port $THALWEG_ENGINE_PORT must be free" start_service engine 300 answers "$THALWEG_ENGINE_URL/healthz"
step "start api" "$logs; port $THALWEG_API_PORT must be free" start_api
step "start collector" "$logs" start_service collector 0
step "make admin" "'make admin-password' makes a new password" make_admin
step "lead command line" "read the log above" write_cli_environment
step "enrol engine" "$logs" enrol_engine
if [[ $THALWEG_DEMO == pgbench ]]; then
  step "start demo source" "$logs" start_cluster source
  step "start demo destination" "$logs" start_cluster destination
  step "prepare demo source" "$logs" make_demo_source
  step "prepare demo destination" "$logs" make_demo_destination
  step "start demo relay" "$logs; port $THALWEG_RELAY_PORT must be free" start_relay
  step "start demo load" "$logs" start_service load 0
  step "lead demo over relay" "correct the database's address in the console" lead_over_relay
  step "make demo stream" "open the console: it names the reason and the cure" make_demo_stream
fi
printf '\n  console    %s\n  user       admin\n' "$THALWEG_API_URL"
print_new_admin_password
printf '  commands   source %q, then %q/bin/thalweg\n' "$THALWEG_HOME/cli.env" "$THALWEG_VENV"
