# shellcheck shell=bash
# The services: whom each runs as, its command, how it starts. Sourced, never run; needs settings, steps, secrets, users,
# clusters, redis and daemons.

THALWEG_API_URL=http${THALWEG_TLS_CERTIFICATE_FILE:+s}://$THALWEG_API_HOST:$THALWEG_API_PORT
THALWEG_ENGINE_URL=http://$THALWEG_ENGINE_HOST:$THALWEG_ENGINE_PORT
THALWEG_TOKEN_FILE=$THALWEG_SECRETS/api-token
THALWEG_ENGINE_BINARY=${THALWEG_ENGINE_BINARY:-$THALWEG_BUILD/release/src/daemon/thalwegd}
DEMO_STREAM='shop to warehouse'
export THALWEG_API_URL THALWEG_ENGINE_URL THALWEG_TOKEN_FILE
((${#THALWEG_SETTINGS_OF_FILE[@]} == 0)) || export "${THALWEG_SETTINGS_OF_FILE[@]}"

# The control plane's settings (backend/thalweg/kernel/settings.py), for API, collector and thalweg-admin: control_plane_environment SERVICE
control_plane_environment() {
  export THALWEG_STORE_URL THALWEG_REDIS_URL THALWEG_LISTEN_HOST THALWEG_LISTEN_PORT THALWEG_SECRET_KEY_FILE
  export THALWEG_CONSOLE_DIRECTORY THALWEG_HELP_DIRECTORY THALWEG_CONTRACT_DIRECTORY
  THALWEG_STORE_URL=postgresql://thalweg:$(secret store-thalweg)@$THALWEG_STORE_HOST:$THALWEG_STORE_PORT/thalweg
  THALWEG_REDIS_URL=redis://:$(secret redis)@$THALWEG_REDIS_HOST:$THALWEG_REDIS_PORT/0
  THALWEG_LISTEN_HOST=$THALWEG_LISTEN
  THALWEG_LISTEN_PORT=$THALWEG_API_PORT
  THALWEG_SECRET_KEY_FILE=$(hand_over "$1" secret.key)
  THALWEG_CONSOLE_DIRECTORY=$(code_directory)/frontend/dist
  THALWEG_HELP_DIRECTORY=$(help_directory)
  # The two databases that the lab may act on: none where there is no demo. The destination is behind the relay.
  if [[ $THALWEG_DEMO == pgbench ]]; then
    export THALWEG_LAB_SOURCE=$THALWEG_SOURCE_HOST:$THALWEG_SOURCE_PORT/demo
    export THALWEG_LAB_DESTINATION=$THALWEG_RELAY_HOST:$THALWEG_RELAY_PORT/demo
    export THALWEG_LAB_RATE=$THALWEG_DEMO_RATE
  fi
  hand_over_files "$1"
}

# The files that settings name, where the service's user can read them: the caller's may be root's alone.
hand_over_files() {
  local name
  for name in THALWEG_TLS_CERTIFICATE_FILE THALWEG_TLS_KEY_FILE THALWEG_ENGINE_CA_FILE THALWEG_DATABASE_SERVICE_FILE; do
    [[ -n ${!name:-} ]] || continue
    if [[ ! -r ${!name} ]]; then
      echo "$name: ${!name} cannot be read."
      echo "cure: correct $name in $THALWEG_HOME/settings.env or in the environment"
      return 1
    fi
    printf -v "$name" '%s' "$(hand_over_file "$1" "${!name}" "$name")"
    export "${name?}"
  done
}

# venv_command NAME : prints its path, in the copy of the code where there is one.
venv_command() {
  local code
  code=$(code_directory)
  if [[ $code == "$THALWEG_ROOT" ]]; then
    printf '%s\n' "$THALWEG_VENV/bin/$1"
  else
    printf '%s\n' "$code/.venv/bin/$1"
  fi
}

run_admin() {
  (
    control_plane_environment api
    as_user "$(service_user api)" "$(venv_command thalweg-admin)" "$@"
  )
}
run_rest() { python3 "$THALWEG_ROOT/scripts/rest.py" "$@"; }

# service_command NAME : sets the array 'command' and the signal 'ends_with', exports what the service reads from its
# environment, and makes its directories.
service_command() {
  local name=$1 code
  ends_with=TERM
  code=$(code_directory)
  case $name in
    store | source | destination)
      init_cluster "$name"
      write_cluster_settings "$name"
      ends_with=INT
      command=("$THALWEG_PG_BIN/postgres" -D "$(clusters_directory)/$name") ;;
    redis)
      write_redis_configuration
      command=(redis-server "$(redis_directory)/redis.conf") ;;
    api | collector)
      control_plane_environment "$name"
      command=("$(venv_command "thalweg-$name")") ;;
    engine)
      own_directory engine "$(engine_directory)"
      command=("$(engine_program)" --listen "$THALWEG_LISTEN:$THALWEG_ENGINE_PORT"
        --propagation-listen "$THALWEG_PROPAGATION_LISTEN:$THALWEG_PROPAGATION_PORT"
        --state-dir "$(engine_directory)" --token-file "$(hand_over engine engine-token)") ;;
    load)
      PGPASSWORD=$(secret source-shop)
      export PGPASSWORD
      command=("$code/scripts/load.sh") ;;
    relay)
      export PGUSER=thalweg PGDATABASE=demo PGPASSWORD
      PGPASSWORD=$(secret destination-thalweg)
      command=("$(venv_command thalweg-lab-relay)" --listen "$THALWEG_LISTEN:$THALWEG_RELAY_PORT"
        --to "$THALWEG_DESTINATION_HOST:$THALWEG_DESTINATION_PORT") ;;
    *) echo "unknown service '$name'" >&2; return 2 ;;
  esac
}

# An engine directory of an older checkout stays where it is.
engine_directory() {
  if [[ -d $THALWEG_HOME/engine ]]; then
    printf '%s\n' "$THALWEG_HOME/engine"
  else
    printf '%s\n' "$(services_directory)/engine"
  fi
}

engine_program() {
  local copy
  copy=$(code_directory)/thalwegd
  if [[ -x $copy ]]; then
    printf '%s\n' "$copy"
  else
    printf '%s\n' "$THALWEG_ENGINE_BINARY"
  fi
}

# Whether it answers, not who it is: --insecure.
answers() { curl --silent --fail --insecure --noproxy '*' --max-time 5 --output /dev/null "$1"; }

# One that runs may have been started with TLS where the settings know of none, or the other way round.
start_api() {
  local other=http://${THALWEG_API_URL#http*://}
  [[ $THALWEG_API_URL == https://* ]] || other=https://${THALWEG_API_URL#http://}
  if daemon_pid api >/dev/null && answers "$other/healthz"; then
    echo "The API that runs answers at $other, and these settings say $THALWEG_API_URL."
    echo "cure: write THALWEG_TLS_CERTIFICATE_FILE and THALWEG_TLS_KEY_FILE into $THALWEG_HOME/settings.env, or leave" \
      "both out everywhere; then 'make down' and 'make up'"
    return 1
  fi
  start_service api 300 answers "$THALWEG_API_URL/healthz"
}

# service_version NAME : one hash over what API, collector, engine or relay would be started from now: its code, and settings.env.
service_version() {
  local paths=("$THALWEG_HOME/settings.env")
  case $1 in
    engine) paths+=("$THALWEG_ENGINE_BINARY") ;;
    relay) paths+=("$THALWEG_ROOT/backend/thalweg/lab_relay" "$THALWEG_VENV/.lock") ;;
    *) paths+=("$THALWEG_ROOT"/{backend/thalweg,engine/contract,migrations,frontend/dist} "$THALWEG_VENV/.lock") ;;
  esac
  # A stack without settings.env, or without the console, is one too.
  { find "${paths[@]}" -type f ! -name '*.pyc' -print0 2>/dev/null || true; } | sort -z | xargs -0 sha256sum | sha256sum
}

# Ends those of API, collector, engine and relay that run older code or older settings than there are now. Before the store is
# migrated: none of them reads a schema that is newer than it.
stop_older() {
  local name ended=()
  for name in collector api engine relay; do
    daemon_pid "$name" >/dev/null || continue
    [[ $(service_version "$name") != "$(cat "$THALWEG_RUN/$name.version" 2>/dev/null)" ]] || continue
    stop_daemon "$name" 30
    ended+=("$name")
  done
  echo "note: ${ended[*]:-none}"
}

# start_service NAME SECONDS CHECK... : supervised, as its user; then waits until the check succeeds.
start_service() {
  local name=$1 seconds=$2 fresh="" command ends_with become
  shift 2
  if daemon_pid "$name" >/dev/null; then
    echo "note: already running"
  else
    fresh=1
    case $name in
      api | collector | engine | relay) mkdir -p "$THALWEG_RUN" && service_version "$name" >"$THALWEG_RUN/$name.version" ;;
    esac
    (
      service_command "$name"
      becoming "$(service_user "$name")"
      start_daemon "$name" "${become[@]}" "$(code_directory)/scripts/supervise.sh" "$ends_with" "${command[@]}"
    )
  fi
  (($# == 0)) || check_daemon "$name" "$seconds" "$fresh" "$@"
}

start_cluster() {
  if ! daemon_pid "$1" >/dev/null; then
    if [[ -d $(clusters_directory)/$1 ]] && cluster_is_running "$1"; then
      echo "note: runs, but nothing watches over it: 'make down' and 'make up' change that"
      return 0
    fi
    wait_for_port "$(cluster_port "$1")"
  fi
  start_service "$1" 300 cluster_accepts "$1"
}

# Through it, the destination answers.
start_relay() {
  daemon_pid relay >/dev/null || wait_for_port "$THALWEG_RELAY_PORT"
  start_service relay 300 "$THALWEG_PG_BIN/pg_isready" --quiet --host="$THALWEG_RELAY_HOST" --port="$THALWEG_RELAY_PORT"
}

start_redis() {
  daemon_pid redis >/dev/null || wait_for_port "$THALWEG_REDIS_PORT"
  start_service redis 300 redis_answers
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

# A file to source: it leads the command line to this stack, whatever its ports. A certificate of an own authority is
# trusted by that authority's, THALWEG_CA_FILE; a self-signed one is its own.
write_cli_environment() {
  local trusted=${THALWEG_CA_FILE:-${THALWEG_TLS_CERTIFICATE_FILE:-}}
  {
    printf 'export THALWEG_URL=%q\n' "$THALWEG_API_URL"
    printf 'export THALWEG_TOKEN_FILE=%q\n' "$(realpath "$THALWEG_TOKEN_FILE")"
    [[ -z ${THALWEG_TLS_CERTIFICATE_FILE:-} ]] ||
      printf 'export THALWEG_CA_FILE=%q\n' "$(realpath "$trusted")"
  } >"$THALWEG_HOME/cli.env"
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

enrol_engine() { run_admin enrol-local --token-file "$(hand_over api engine-token)" --url "$THALWEG_ENGINE_URL"; }

print_new_admin_password() {
  local file=$THALWEG_SECRETS/admin-password-to-print
  if [[ -s $file ]]; then
    printf '  password   %s   (shown this once; %s makes a new one)\n' "$(cat "$file")" "'make admin-password'"
    rm -f "$file"
  else
    printf "  password   as printed the first time; 'make admin-password' makes a new one\n"
  fi
}

# The demo of an older version was registered with its destination's own address. Its stream goes on from where it was:
# progress is kept at the destination itself.
lead_over_relay() {
  secret destination-thalweg | run_rest move-database "$THALWEG_DESTINATION_HOST" "$THALWEG_DESTINATION_PORT" demo thalweg \
    "$THALWEG_RELAY_HOST" "$THALWEG_RELAY_PORT"
}

# A demo stream that a user has deleted is not made again at the next start; its rows at the destination show that there
# was one.
make_demo_stream() {
  if ! run_rest has-stream "$DEMO_STREAM" && demo_was_copied; then
    echo "note: was deleted; 'make demo' makes it again"
    return 0
  fi
  secret source-thalweg | run_rest database shop "$THALWEG_SOURCE_HOST" "$THALWEG_SOURCE_PORT" demo thalweg
  secret destination-thalweg |
    run_rest database warehouse "$THALWEG_RELAY_HOST" "$THALWEG_RELAY_PORT" demo thalweg
  run_rest stream "$DEMO_STREAM" shop public warehouse
  run_rest wait-replicating "$DEMO_STREAM" 600
}
