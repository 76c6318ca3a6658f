# shellcheck shell=bash
# The demo databases and their roles. Sourced, never run; needs clusters.
#
# At the source, 'shop' owns the tables and runs the load, and 'thalweg' is what a careful administrator would give the
# engine: no superuser, REPLICATION for the slot, membership in the owner and CREATE for the publication.
# At the destination, 'thalweg' owns the database and may set session_replication_role, so that apply fires no triggers.
# The extension thalweg_datalayer is the superuser's to create; everybody may call it.

make_demo_source() {
  make_database source demo shop
  sql source demo --set=password="$(secret source-thalweg)" <<'SQL'
SELECT format('CREATE ROLE thalweg LOGIN REPLICATION PASSWORD %L', :'password')
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'thalweg') \gexec
GRANT shop TO thalweg;
GRANT CREATE, CONNECT ON DATABASE demo TO thalweg;
SQL
  if [[ $(sql source demo --tuples-only --no-align <<<"SELECT to_regclass('pgbench_history') IS NULL") == t ]]; then
    PGPASSWORD=$(secret source-shop) "$THALWEG_PG_BIN/pgbench" --initialize --quiet --scale="$THALWEG_DEMO_SCALE" \
      --host="$THALWEG_SOURCE_HOST" --port="$THALWEG_SOURCE_PORT" --username=shop demo
    # It has no primary key; its deletes and updates, if there were any, would need the whole row to be found.
    sql source demo <<<'ALTER TABLE pgbench_history REPLICA IDENTITY FULL'
    echo "note: loaded at scale $THALWEG_DEMO_SCALE"
  fi
}

make_demo_destination() {
  make_database destination demo thalweg
  sql destination demo <<'SQL'
GRANT SET ON PARAMETER session_replication_role TO thalweg;
-- By default what it makes without naming a schema would land in the schema of its name, which is the engine's.
ALTER ROLE thalweg SET search_path = public;
SELECT 'CREATE EXTENSION IF NOT EXISTS thalweg_datalayer'
 WHERE EXISTS (SELECT FROM pg_available_extensions WHERE name = 'thalweg_datalayer') \gexec
SQL
}

demo_was_copied() {
  [[ $(sql destination demo --tuples-only --no-align <<<"SELECT to_regclass('pgbench_accounts') IS NOT NULL") == t ]]
}

# Empties the demo's destination, for a stream that copies it again.
drop_demo_copy() { sql destination demo <<<'DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers'; }
