#!/usr/bin/env bash
# The whole product of an earlier checkout, then this one's, over the same data and under load: `make up` there with its demo
# and a stream to two destinations, `make up` here with the same THALWEG_HOME. Every stream has to go on without a new copy,
# and in the end every table is compared row by row.
# usage: scripts/upgrade_stack.sh FOLDER          (a checkout of the earlier commit; it is built by its own scripts)
set -euo pipefail
earlier=$(cd "${1:?usage: scripts/upgrade_stack.sh FOLDER}" && pwd)
here=$(cd "$(dirname "$0")/.." && pwd)
home=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-upgrade-XXXXXX")
chmod 755 "$home"
for name in $(compgen -e THALWEG_ || true); do
  unset "$name"
done
export THALWEG_HOME=$home/home THALWEG_PORT_OFFSET=${UPGRADE_PORT_OFFSET:-8000} THALWEG_DEMO_RATE=300
source "$here/scripts/settings.sh"
for part in steps secrets users clusters daemons demo; do
  # shellcheck source=/dev/null
  source "$here/scripts/lib/$part.sh"
done

end() {
  local status=$?
  trap - EXIT INT TERM
  "$here/scripts/down.sh" >/dev/null || status=1
  if ((status == 0)); then
    rm -rf "$(services_directory)" "$home"
  else
    echo "its logs: $THALWEG_LOG"
  fi
  exit "$status"
}
trap end EXIT
trap 'exit 130' INT TERM

# up FOLDER : with that checkout's own settings of where its builds lie.
up() { (cd "$1" && env -u THALWEG_ROOT -u THALWEG_BUILD -u THALWEG_VENV scripts/up.sh | grep -v '^  password'); }

rest() {
  THALWEG_TOKEN_FILE=$(secret_file api-token) THALWEG_API_URL=http://127.0.0.1:$THALWEG_API_PORT python3 "$here/scripts/rest.py" "$@"
}

# Two more databases beside the demo's, and a stream from the demo's source to both.
make_second_stream() {
  local name
  for name in left right; do
    make_database destination "$name" thalweg
    sql destination "$name" <<<'CREATE EXTENSION IF NOT EXISTS thalweg_datalayer'
    secret destination-thalweg | rest database "$name" "$THALWEG_DESTINATION_HOST" "$THALWEG_DESTINATION_PORT" "$name" thalweg
  done
  rest stream pair shop public left right
  rest wait-replicating pair 180
}

# Table by table: its name, rows, and a sum over all of them.
contents() {
  sql "$1" "$2" --tuples-only --no-align <<'SQL'
SELECT format('SELECT %L, count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM %s t', oid::regclass, oid::regclass)
  FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname \gexec
SQL
}

# The files of the tables, which a new copy would have changed.
files() {
  sql destination "$1" --tuples-only --no-align <<<"SELECT relname, pg_relation_filenode(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname"
}

all_equal() {
  local wanted name
  wanted=$(contents source demo)
  for name in demo left right; do
    diff <(echo "$wanted") <(contents destination "$name") || return 1
  done
}

echo "== earlier: $(git -C "$earlier" log -1 --format='%h %s')"
up "$earlier"
step "make second stream" "read the log above" make_second_stream
before=$(for name in demo left right; do files "$name"; done)
echo "== now: $(git -C "$here" log -1 --format='%h %s')"
up "$here"
step "demo replicates" "read the engine's log" rest wait-replicating "shop to warehouse" 120
step "pair replicates" "read the engine's log" rest wait-replicating pair 120
sleep 20 # of load over the new one
step "stop load" "read the log above" stop_daemon load 10
step "compare rows" "the tables that differ stand above" wait_until 120 "all rows equal" all_equal
after=$(for name in demo left right; do files "$name"; done)
[[ $before == "$after" ]] || { echo "a table was copied anew:"; diff <(echo "$before") <(echo "$after"); exit 1; }
echo "upgrade: $(contents source demo | wc -l) tables at three destinations are equal, none was copied anew"
