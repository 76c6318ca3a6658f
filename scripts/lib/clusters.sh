# shellcheck shell=bash
# The local PostgreSQL clusters: store, source, destination. Sourced, never run; needs settings, steps, secrets, users and daemons.

# The directory of all clusters. Where it was made first it stays: the file clusters.location says so for one outside
# THALWEG_HOME.
clusters_directory() {
  local pointer=$THALWEG_HOME/clusters.location directory
  if [[ -f $pointer ]]; then
    cat "$pointer"
    return
  fi
  mkdir -p "$THALWEG_HOME"
  directory=$(services_directory)/clusters
  [[ $directory == "$THALWEG_HOME"/* ]] || printf '%s\n' "$directory" >"$pointer"
  printf '%s\n' "$directory"
}

cluster_port() {
  case $1 in
    store) echo "$THALWEG_STORE_PORT" ;;
    source) echo "$THALWEG_SOURCE_PORT" ;;
    destination) echo "$THALWEG_DESTINATION_PORT" ;;
  esac
}

cluster_host() {
  case $1 in
    store) echo "$THALWEG_STORE_HOST" ;;
    source) echo "$THALWEG_SOURCE_HOST" ;;
    destination) echo "$THALWEG_DESTINATION_HOST" ;;
  esac
}

# Minor releases of PostgreSQL from November 2026 let only those output plugins be used that the configuration lists.
restricts_output_plugins() {
  as_pg "$THALWEG_PG_BIN/postgres" --describe-config | awk '$1 == "output_plugin_libraries" { found = 1 } END { exit !found }'
}

cluster_settings() {
  cat <<CONF
listen_addresses = '$THALWEG_LISTEN'
port = $(cluster_port "$1")
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
shared_buffers = '128MB'
log_line_prefix = '%m [%p] %q%u@%d '
timezone = 'UTC'
CONF
  case $1 in
    store) echo "max_connections = 100" ;;
    source) printf '%s\n' "wal_level = 'logical'" 'max_replication_slots = 20' 'max_wal_senders = 20' \
                          "max_wal_size = '2GB'" "max_slot_wal_keep_size = '8GB'"
            if restricts_output_plugins; then
              echo "output_plugin_libraries = 'pgoutput, test_decoding, thalweg_output'"
            fi ;;
    destination) printf '%s\n' 'max_connections = 200' "max_wal_size = '2GB'" ;;
  esac
}

init_cluster() {
  local name=$1 directory password_file
  directory=$(clusters_directory)/$name
  [[ -f $directory/PG_VERSION ]] && return 0
  mkdir -p "$(clusters_directory)"
  if ((EUID == 0)); then
    chown "$THALWEG_PG_USER": "$(clusters_directory)"
  fi
  password_file=$(clusters_directory)/.$name.password
  install -m 0600 "$(secret_file "$name-superuser")" "$password_file"
  if ((EUID == 0)); then
    chown "$THALWEG_PG_USER": "$password_file"
  fi
  rm -rf "$directory.new"
  as_pg "$THALWEG_PG_BIN/initdb" --pgdata="$directory.new" --username=postgres --pwfile="$password_file" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
  rm -f "$password_file"
  if [[ $THALWEG_LISTEN != 127.0.0.1 ]]; then
    echo 'host all all samenet scram-sha-256' | as_pg tee -a "$directory.new/pg_hba.conf" >/dev/null
  fi
  as_pg mv "$directory.new" "$directory"
  echo "note: initialised in $directory"
}

# The settings follow scripts/settings.sh, so they are written before each start.
write_cluster_settings() {
  local directory
  directory=$(clusters_directory)/$1
  cluster_settings "$1" | as_pg tee "$directory/thalweg.conf" >/dev/null
  as_pg grep -q "^include 'thalweg.conf'" "$directory/postgresql.conf" ||
    echo "include 'thalweg.conf'" | as_pg tee -a "$directory/postgresql.conf" >/dev/null
}

cluster_is_running() { as_pg "$THALWEG_PG_BIN/pg_ctl" --pgdata="$(clusters_directory)/$1" status >/dev/null 2>&1; }

cluster_accepts() { "$THALWEG_PG_BIN/pg_isready" --quiet --host="$(cluster_host "$1")" --port="$(cluster_port "$1")"; }

# Ends one that no supervisor runs, too: of an older checkout, or one whose supervisor was killed.
stop_cluster() {
  stop_daemon "$1" 60
  cluster_is_running "$1" || return 0
  as_pg "$THALWEG_PG_BIN/pg_ctl" --pgdata="$(clusters_directory)/$1" --wait --timeout=60 --mode=fast stop
}

# sql CLUSTER DATABASE [PSQL-OPTION...] : runs standard input as the cluster's superuser.
sql() {
  local name=$1 database=$2
  shift 2
  PGPASSWORD=$(secret "$name-superuser") "$THALWEG_PG_BIN/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 \
    --host="$(cluster_host "$name")" --port="$(cluster_port "$name")" --username=postgres --dbname="$database" "$@"
}

# make_database CLUSTER DATABASE OWNER : role with a password of its own, and a database that it owns; both only if missing.
make_database() {
  local name=$1 database=$2 owner=$3
  sql "$name" postgres --set=owner="$owner" --set=database="$database" --set=password="$(secret "$name-$owner")" <<'SQL'
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :'owner', :'password')
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'owner') \gexec
SELECT format('CREATE DATABASE %I OWNER %I', :'database', :'owner')
 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec
SQL
}
