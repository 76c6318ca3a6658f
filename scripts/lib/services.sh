# shellcheck shell=bash
# Thalweg's own services: engine, API, collector. Sourced, never run; needs settings, secrets and daemons.

THALWEG_API_URL=http://$THALWEG_API_HOST:$THALWEG_API_PORT
THALWEG_ENGINE_URL=http://$THALWEG_ENGINE_HOST:$THALWEG_ENGINE_PORT
THALWEG_TOKEN_FILE=$THALWEG_SECRETS/api-token
THALWEG_ENGINE_BINARY=${THALWEG_ENGINE_BINARY:-$THALWEG_BUILD/release/src/daemon/thalwegd}
export THALWEG_API_URL THALWEG_ENGINE_URL THALWEG_TOKEN_FILE

# The control plane's settings (backend/thalweg/kernel/settings.py), for API, collector and thalweg-admin.
control_plane_environment() {
  export THALWEG_STORE_URL THALWEG_REDIS_URL THALWEG_LISTEN_HOST THALWEG_LISTEN_PORT THALWEG_SECRET_KEY_FILE
  export THALWEG_CONSOLE_DIRECTORY THALWEG_CONTRACT_DIRECTORY
  THALWEG_STORE_URL=postgresql://thalweg:$(secret store-thalweg)@$THALWEG_STORE_HOST:$THALWEG_STORE_PORT/thalweg
  THALWEG_REDIS_URL=redis://:$(secret redis)@$THALWEG_REDIS_HOST:$THALWEG_REDIS_PORT/0
  THALWEG_LISTEN_HOST=$THALWEG_LISTEN
  THALWEG_LISTEN_PORT=$THALWEG_API_PORT
  THALWEG_SECRET_KEY_FILE=$THALWEG_SECRETS/secret.key
  THALWEG_CONSOLE_DIRECTORY=$THALWEG_ROOT/frontend/dist
}

run_api() { control_plane_environment && exec "$THALWEG_VENV/bin/thalweg-api"; }
run_collector() { control_plane_environment && exec "$THALWEG_VENV/bin/thalweg-collector"; }
run_admin() { control_plane_environment && "$THALWEG_VENV/bin/thalweg-admin" "$@"; }
run_rest() { python3 "$THALWEG_ROOT/scripts/rest.py" "$@"; }

run_engine() {
  mkdir -p "$THALWEG_HOME/engine"
  exec "$THALWEG_ENGINE_BINARY" --listen "$THALWEG_LISTEN:$THALWEG_ENGINE_PORT" \
    --propagation-listen "$THALWEG_LISTEN:$THALWEG_PROPAGATION_PORT" \
    --state-dir "$THALWEG_HOME/engine" --token-file "$(secret_file engine-token)"
}

answers() { curl --silent --fail --noproxy '*' --max-time 5 --output /dev/null "$1"; }

# What is started needs a process of its own that is not this shell: run.sh is it.
start_service() {
  local name=$1 address=${2:-}
  start_daemon "$name" "$THALWEG_ROOT/scripts/run.sh" "$name"
  [[ -z $address ]] || check_daemon "$name" 30 answers "$address"
}

migrate_store() {
  make_database store thalweg thalweg
  run_admin migrate
}

# The first time: the user 'admin' with a random password. Always: a token that works, for these scripts and the CLI.
make_admin() {
  if [[ -s $THALWEG_TOKEN_FILE ]] && run_rest token-works; then
    return 0
  fi
  local answer
  answer=$(run_admin create-admin)
  if [[ $answer == *'password: '* ]]; then
    keep_to_print "${answer##*password: }"
  fi
  (umask 077 && run_admin create-token --name "scripts on $(uname -n)" >"$THALWEG_TOKEN_FILE.new")
  mv "$THALWEG_TOKEN_FILE.new" "$THALWEG_TOKEN_FILE"
  run_rest token-works
}

reset_admin_password() {
  local password
  password=$(head -c 15 /dev/urandom | base64 | tr '+/' 'xy')
  run_admin set-password <<<"$password"
  keep_to_print "$password"
}

# A step's output goes to its log, where no password may be: this one waits in a file for the end of the script, which
# prints it once and removes the file. Afterwards only its hash exists.
keep_to_print() {
  mkdir -p "$THALWEG_SECRETS"
  (umask 077 && printf '%s\n' "$1" >"$THALWEG_SECRETS/admin-password-to-print")
}

enrol_engine() { run_admin enrol-local --token-file "$(secret_file engine-token)" --url "$THALWEG_ENGINE_URL"; }

print_new_admin_password() {
  local file=$THALWEG_SECRETS/admin-password-to-print
  if [[ -s $file ]]; then
    printf '  password   %s   (shown this once; %s makes a new one)\n' "$(cat "$file")" "'make admin-password'"
    rm -f "$file"
  else
    printf "  password   as printed the first time; 'make admin-password' makes a new one\n"
  fi
}

make_demo_stream() {
  secret source-thalweg | run_rest database shop "$THALWEG_SOURCE_HOST" "$THALWEG_SOURCE_PORT" demo thalweg
  secret destination-thalweg |
    run_rest database warehouse "$THALWEG_DESTINATION_HOST" "$THALWEG_DESTINATION_PORT" demo thalweg
  run_rest stream "shop to warehouse" shop warehouse public
  run_rest wait-replicating "shop to warehouse" 120
}
