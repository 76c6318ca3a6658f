"""Seven calibration objects in one transaction: as 61 200 rows each, or as 1.63 MB of bytes each (WLCG 2007)."""

from dataclasses import dataclass

from bench.rig import SOURCE_DATABASE, Rig
from harness.compare import Table

OBJECTS = 7
ROWS_PER_OBJECT = 61_200
OBJECT_BYTES = 1_630_000

SCHEMA = """
CREATE TABLE pedestal_item (
  object integer, crystal integer,
  mean_x12 real NOT NULL, rms_x12 real NOT NULL, mean_x6 real NOT NULL, rms_x6 real NOT NULL,
  mean_x1 real NOT NULL, rms_x1 real NOT NULL,
  PRIMARY KEY (object, crystal)
);
CREATE TABLE pedestal_object (object integer PRIMARY KEY, payload bytea NOT NULL);
CREATE TABLE sentinel (run text PRIMARY KEY);
CREATE TABLE wide (id bigint PRIMARY KEY, account integer NOT NULL, amount numeric(12,2) NOT NULL, note text NOT NULL);
"""

TABLES: list[Table] = [("public", "pedestal_item"), ("public", "pedestal_object"), ("public", "wide"),
                       ("public", "sentinel")]

# Bytes as a detector's would be: no pattern that a compressor finds. 51 000 hashes of 32 bytes, cut to size.
_OBJECTS = f"""
INSERT INTO pedestal_object
  SELECT object, (SELECT substr(string_agg(sha256(convert_to(object || '/' || part, 'UTF8')), ''), 1, {OBJECT_BYTES})
                    FROM generate_series(1, {OBJECT_BYTES // 32 + 1}) part)
    FROM generate_series(1, {OBJECTS}) object"""

_ROWS = f"""
INSERT INTO pedestal_item
  SELECT object, crystal, 200 + random(), random(), 200 + random(), random(), 200 + random(), random()
    FROM generate_series(1, {OBJECTS}) object, generate_series(1, {ROWS_PER_OBJECT}) crystal"""


@dataclass(frozen=True)
class Transaction:
    name: str
    table: str
    lcrs: int
    statement: str


ROWS = Transaction("rows", "pedestal_item", OBJECTS * ROWS_PER_OBJECT, _ROWS)
BINARY = Transaction("objects", "pedestal_object", OBJECTS, _OBJECTS)


def wide(rows: int) -> Transaction:
    """One transaction for the proof of bounded memory."""
    return Transaction("memory", "wide", rows, f"""
        INSERT INTO wide SELECT n, n % 1000, n % 100000 + 0.25, 'entry number ' || n || ' of a long transaction'
          FROM generate_series(1, {rows}) n""")


class Objects:
    """ROWS as one transaction; implements drains.Workload."""

    tables = TABLES

    def make_source(self, rig: Rig) -> None:
        rig.source.make_database(SOURCE_DATABASE)
        rig.source.run_script(SOURCE_DATABASE, SCHEMA)
        rig.source.sql(SOURCE_DATABASE, "CREATE PUBLICATION native FOR ALL TABLES")

    def make_destination(self, rig: Rig, database: str) -> None:
        rig.destination.make_database(database)
        rig.destination.run_script(database, SCHEMA)

    def stage(self, rig: Rig) -> int:
        rig.source.sql(SOURCE_DATABASE, ROWS.statement, "INSERT INTO sentinel VALUES ('staged')")
        return ROWS.lcrs + 1
