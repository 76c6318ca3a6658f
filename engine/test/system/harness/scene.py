"""Scene of nearly every test: a database on each side, roles as an administrator would give them, one engine."""

import secrets
from contextlib import suppress
from typing import Any

from harness.cluster import PASSWORD, Cluster, wait_for
from harness.compare import Table, differences, user_tables
from harness.engine import SECONDS, Engine

# A replication role that is no superuser and owns what it replicates; the one that applies may turn triggers off.
SOURCE_ROLE = f"CREATE ROLE thalweg LOGIN REPLICATION PASSWORD '{PASSWORD}'"
DESTINATION_ROLE = (f"CREATE ROLE thalweg LOGIN PASSWORD '{PASSWORD}'",
                    "GRANT SET ON PARAMETER session_replication_role TO thalweg")


class Scene:
    def __init__(self, source: Cluster, destination: Cluster, engine: Engine, database: str,
                 libraries: bool = True) -> None:
        self.source = source
        self.destination = destination
        self.engine = engine
        self.database = database
        self.libraries = libraries  # whether the servers use ours
        self.stream = secrets.token_hex(5)

    def make(self) -> None:
        self.make_source()
        if not self.destination.value("postgres", "SELECT count(*) FROM pg_roles WHERE rolname = 'thalweg'"):
            self.destination.sql("postgres", *DESTINATION_ROLE)
        self.destination.make_database(self.database, owner="thalweg")
        if self.libraries:
            self.destination.sql(self.database, "CREATE EXTENSION thalweg_datalayer")
        self.engine.start()

    def make_source(self) -> None:
        """The source's half, also for a source that a test puts in the place of the first."""
        if not self.source.value("postgres", "SELECT count(*) FROM pg_roles WHERE rolname = 'thalweg'"):
            self.source.sql("postgres", SOURCE_ROLE)
        self.source.make_database(self.database, owner="thalweg")

    def remove(self) -> None:
        """Ends the engine, then whatever it has left, so that a failed test costs the next ones nothing."""
        self.engine.stop()
        for cluster in (self.source, self.destination):
            if not cluster.is_running():
                cluster.start()
            cluster.wait_ready()
        self._drop_slots()
        for cluster in (self.source, self.destination):
            cluster.sql("postgres", f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')

    def _drop_slots(self) -> None:
        # A physical one has no database.
        ours = f"database = '{self.database}' OR starts_with(slot_name, 'thalweg_{self.stream}')"

        def dropped() -> bool:
            with suppress(Exception):
                self.source.sql("postgres", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                                            f"WHERE ({ours}) AND NOT active")
            return int(self.source.value("postgres", f"SELECT count(*) FROM pg_replication_slots WHERE {ours}")) == 0
        wait_for(dropped, 30, "slots are dropped")

    # --- short forms

    def at_source(self, *statements: str) -> list[tuple[object, ...]]:
        return self.source.sql(self.database, *statements)

    def at_destination(self, *statements: str) -> list[tuple[object, ...]]:
        return self.destination.sql(self.database, *statements)

    def run_at_source(self, script: str) -> None:
        """As the role thalweg would own things: tables belong to it."""
        self.source.run_script(self.database, "SET ROLE thalweg;\n" + script)

    @property
    def source_conninfo(self) -> str:
        return self.source.conninfo(self.database, "thalweg")

    @property
    def destination_conninfo(self) -> str:
        return self.destination.conninfo(self.database, "thalweg")

    def start_stream(self, tables: list[Table] | None = None, wait: bool = True,
                     **parameters: Any) -> None:
        """Replicates these tables, or all; waits until the initial copy has been handed over to apply."""
        parameters.setdefault("source_plugin", "thalweg" if self.libraries else "pgoutput")
        self.engine.add_stream(self.stream, self.source_conninfo, self.destination_conninfo,
                               tables or user_tables(self.source, self.database), **parameters)
        if wait:
            self.wait_replicating()

    def wait_replicating(self, seconds: float = SECONDS) -> None:
        self.engine.wait_phase(self.stream, "REPLICATING", seconds)

    def wait_applied(self, seconds: float = SECONDS) -> float:
        return self.engine.wait_applied(self.stream, self.source, self.database, seconds)

    def assert_same(self, tables: list[Table] | None = None) -> None:
        found = differences(self.source, self.destination, self.database, self.database,
                            tables or user_tables(self.source, self.database))
        assert not found, "\n" + "\n".join(found)

    def slots(self) -> int:
        return int(self.source.value("postgres", "SELECT count(*) FROM pg_replication_slots "
                                     f"WHERE slot_name IN ('thalweg_{self.stream}', 'thalweg_{self.stream}_next')"))

    def publications(self) -> int:
        return int(self.source.value(self.database, "SELECT count(*) FROM pg_publication "
                                     f"WHERE pubname LIKE 'thalweg\\_{self.stream}%'"))

    def has_destination_schema(self) -> bool:
        return bool(self.destination.value(self.database,
                                           "SELECT count(*) FROM pg_namespace WHERE nspname = 'thalweg'"))

    def assert_nothing_left(self) -> None:
        assert self.slots() == 0, "the slot was left at the source"
        assert self.publications() == 0, "the publication was left at the source"
        assert not self.has_destination_schema(), "the schema thalweg was left at the destination"
