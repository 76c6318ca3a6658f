"""The staged workload: a five-column table, transactions of ten rows, 60 % inserts, 30 % updates, 10 % deletes."""

from harness.cluster import Cluster

ROWS_PER_TRANSACTION = 10
TABLES = [("public", "ledger"), ("public", "sentinel")]

SCHEMA = """
CREATE TABLE ledger (
  id bigint PRIMARY KEY,
  account integer NOT NULL,
  amount numeric(12,2) NOT NULL,
  note text NOT NULL,
  changed_at timestamptz NOT NULL
);
CREATE TABLE sentinel (id integer PRIMARY KEY);
"""

# Deletes take the oldest row and updates a random one that lives, so every change hits exactly one row.
GENERATOR = """
CREATE PROCEDURE stage(transactions integer) LANGUAGE plpgsql AS $$
DECLARE
  newest bigint := 0;
  oldest bigint := 1;
  victim bigint;
BEGIN
  PERFORM setseed(0.5);
  FOR t IN 1 .. transactions LOOP
    FOR part IN 1 .. 3 LOOP
      FOR row IN 1 .. 2 LOOP
        newest := newest + 1;
        INSERT INTO ledger VALUES (newest, (random() * 100000)::integer, newest % 100000 + 0.25,
                                   'entry number ' || newest, clock_timestamp());
      END LOOP;
      victim := oldest + floor(random() * (newest - oldest + 1))::bigint;
      UPDATE ledger SET amount = amount + 1, changed_at = clock_timestamp() WHERE id = victim;
    END LOOP;
    DELETE FROM ledger WHERE id = oldest;
    oldest := oldest + 1;
    COMMIT;
  END LOOP;
END $$;
"""


def make_source(source: Cluster, database: str) -> None:
    source.make_database(database)
    source.run_script(database, SCHEMA + GENERATOR)
    source.sql(database, "CREATE PUBLICATION native FOR TABLE ledger, sentinel")


def make_destination(destination: Cluster, database: str) -> None:
    destination.make_database(database)
    destination.run_script(database, SCHEMA)


def stage(source: Cluster, database: str, transactions: int) -> int:
    """Runs the workload and returns the bytes of WAL that it wrote."""
    before = source.value(database, "SELECT pg_current_wal_lsn()")
    source.run_script(database, f"SET synchronous_commit = off; CALL stage({transactions});\n"
                                "INSERT INTO sentinel VALUES (1);")
    return int(source.value(database, f"SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{before}')"))
