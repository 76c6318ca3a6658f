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
  make_stock
  # Where the console's lab says how much load it wants; scripts/load.sh reads it. Outside the schema that is replicated.
  sql source demo <<'SQL'
SET ROLE shop;
CREATE SCHEMA IF NOT EXISTS lab;
CREATE TABLE IF NOT EXISTS lab.load (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), rate int NOT NULL CHECK (rate >= 0), until timestamptz NOT NULL);
SQL
}

# A table as old applications have them: without a key, its rows are found by an index. The console's lab drops that index
# at the destination. Made whole or not at all.
make_stock() {
  sql source demo --single-transaction <<'SQL'
SET ROLE shop;
SELECT to_regclass('stock') IS NULL AS missing \gset
\if :missing
CREATE TABLE stock (article int NOT NULL, amount int NOT NULL, place text NOT NULL);
INSERT INTO stock SELECT n, 1000, 'aisle ' || n % 40 || ', shelf ' || n % 700 FROM generate_series(1, 200000) n;
CREATE INDEX stock_by_article ON stock (article);
ALTER TABLE stock REPLICA IDENTITY FULL;
\endif
SQL
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
drop_demo_copy() { sql destination demo <<<'DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers, stock'; }
