"""Transfers between accounts, few of which take most of the updates."""

from dataclasses import dataclass

from bench.rig import SOURCE_DATABASE, Rig
from harness.compare import Table

HOT_KEYS_PERCENT = 1
HOT_UPDATES_PERCENT = 90

SCHEMA = """
CREATE TABLE account (
  id integer PRIMARY KEY,
  branch integer NOT NULL,
  balance bigint NOT NULL,
  note text NOT NULL,
  changed_at timestamptz NOT NULL
);
CREATE TABLE sentinel (id integer PRIMARY KEY);
"""

FILL = """
INSERT INTO account SELECT n, n % 100, 0, 'account number ' || n, '2026-01-01' FROM generate_series(1, {accounts}) n
"""

# The hot accounts are the first ones.
GENERATOR = """
CREATE PROCEDURE stage(transactions integer, rows integer, hot integer, accounts integer) LANGUAGE plpgsql AS $$
DECLARE
  changed integer;
BEGIN
  PERFORM setseed(0.5);
  FOR t IN 1 .. transactions LOOP
    FOR row IN 1 .. rows LOOP
      changed := 1 + floor(random() * CASE WHEN random() < {share} THEN hot ELSE accounts END);
      UPDATE account SET balance = balance + t, changed_at = clock_timestamp() WHERE id = changed;
    END LOOP;
    COMMIT;
  END LOOP;
END $$;
"""


@dataclass(frozen=True)
class Accounts:
    """Transactions of `rows` updates each; implements drains.Workload."""

    transactions: int
    rows: int
    accounts: int

    @property
    def hot(self) -> int:
        """Accounts that take most of the updates."""
        return max(1, self.accounts * HOT_KEYS_PERCENT // 100)

    @property
    def tables(self) -> list[Table]:
        return [("public", "account"), ("public", "sentinel")]

    def make_source(self, rig: Rig) -> None:
        rig.source.make_database(SOURCE_DATABASE)
        share = HOT_UPDATES_PERCENT / 100
        rig.source.run_script(SOURCE_DATABASE, SCHEMA + FILL.format(accounts=self.accounts) + ";\n"
                              + GENERATOR.format(share=share))

    def make_destination(self, rig: Rig, database: str) -> None:
        rig.destination.make_database(database)
        rig.destination.run_script(database, SCHEMA + FILL.format(accounts=self.accounts))

    def stage(self, rig: Rig) -> int:
        rig.source.run_script(SOURCE_DATABASE, "SET synchronous_commit = off; "
                              f"CALL stage({self.transactions}, {self.rows}, {self.hot}, {self.accounts});\n"
                              "INSERT INTO sentinel VALUES (1);")
        return self.transactions * self.rows + 1
