"""Five columns, small transactions: 60 % inserts, 30 % updates, 10 % deletes (Wong et al. 2009, VI.A)."""

from dataclasses import dataclass

from bench.rig import SOURCE_DATABASE, Rig
from harness.compare import Table

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

# Deletes take the oldest row and updates a random one that lives, so every change hits exactly one row. Of ten changes
# the 3rd, 6th and 9th are updates and the 10th is a delete.
GENERATOR = """
CREATE PROCEDURE stage(transactions integer, rows integer) LANGUAGE plpgsql AS $$
DECLARE
  newest bigint := 0;
  oldest bigint := 1;
  victim bigint;
  part integer := 0;
BEGIN
  PERFORM setseed(0.5);
  FOR t IN 1 .. transactions LOOP
    FOR row IN 1 .. rows LOOP
      part := part % 10 + 1;
      IF part = 10 THEN
        DELETE FROM ledger WHERE id = oldest;
        oldest := oldest + 1;
      ELSIF part % 3 = 0 THEN
        victim := oldest + floor(random() * (newest - oldest + 1))::bigint;
        UPDATE ledger SET amount = amount + 1, changed_at = clock_timestamp() WHERE id = victim;
      ELSE
        newest := newest + 1;
        INSERT INTO ledger VALUES (newest, (random() * 100000)::integer, newest % 100000 + 0.25,
                                   'entry number ' || newest, clock_timestamp());
      END IF;
    END LOOP;
    COMMIT;
  END LOOP;
END $$;
"""


@dataclass(frozen=True)
class Ledger:
    """Transactions of `rows` changes each; implements drains.Workload."""

    transactions: int
    rows: int

    @property
    def tables(self) -> list[Table]:
        return [("public", "ledger"), ("public", "sentinel")]

    def make_source(self, rig: Rig) -> None:
        rig.source.make_database(SOURCE_DATABASE)
        rig.source.run_script(SOURCE_DATABASE, SCHEMA + GENERATOR)
        rig.source.sql(SOURCE_DATABASE, "CREATE PUBLICATION native FOR TABLE ledger, sentinel")

    def make_destination(self, rig: Rig, database: str) -> None:
        rig.destination.make_database(database)
        rig.destination.run_script(database, SCHEMA)

    def stage(self, rig: Rig) -> int:
        rig.source.run_script(SOURCE_DATABASE, "SET synchronous_commit = off; "
                              f"CALL stage({self.transactions}, {self.rows});\nINSERT INTO sentinel VALUES (1);")
        return self.transactions * self.rows + 1
