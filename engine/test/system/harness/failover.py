"""A primary, its physical standby, and a stream that knows the addresses of both."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.cluster import PASSWORD, Cluster, wait_for
from harness.engine import SECONDS, Engine
from harness.outage import kill_postmaster, start_again
from harness.scene import Scene
from harness.workspace import give_to_postgres

SLOTS_ARE_SYNCHRONISED_FROM = 170000  # PostgreSQL 17


class Servers:
    """Owner: one test thread. `primary` is the one that takes changes now.

    From PostgreSQL 17 on the standby synchronises the primary's slots, unless told otherwise.
    """

    def __init__(self, workspace: Path, name: str, settings: dict[str, str], programs: Path | None = None,
                 synchronises: bool = True) -> None:
        self.primary = Cluster(workspace, f"{name}-one", settings, programs=programs)
        self.primary.initialise()
        self.primary.start()
        self.standby = Cluster(workspace, f"{name}-two", settings, programs=programs)
        self.clusters = (self.primary, self.standby)
        version = int(self.primary.value("postgres", "SHOW server_version_num"))
        self.synchronises = synchronises and version >= SLOTS_ARE_SYNCHRONISED_FROM
        self.primary.sql("postgres", "SELECT pg_create_physical_replication_slot('standby')")
        self.primary.stop()
        self._copy()
        if self.synchronises:
            self.primary.set(synchronized_standby_slots="'standby'")
            self.standby.set(sync_replication_slots="on")
        self.primary.start()
        self.standby.start()

    def _copy(self) -> None:
        """Of the primary, which is stopped."""
        shutil.copytree(self.primary.directory, self.standby.directory)
        for slot in (self.standby.directory / "pg_replslot").iterdir():
            shutil.rmtree(slot)
        for path in (self.standby.directory, *self.standby.directory.rglob("*")):
            give_to_postgres(path)
        self.standby.set(
            **self.standby.settings, primary_slot_name="'standby'", hot_standby_feedback="on",
            primary_conninfo=f"'host=127.0.0.1 port={self.primary.port} user=postgres password={PASSWORD} "
                             "dbname=postgres'")
        self._signal(self.standby)

    def follow(self) -> None:
        """Makes the server that a promotion has replaced anew, as a standby of the present primary."""
        self.primary.sql("postgres", "SELECT pg_create_physical_replication_slot('standby')")
        self.primary.stop()
        shutil.rmtree(self.standby.directory)
        self._copy()
        self.primary.start()
        self.standby.start()

    @property
    def address(self) -> str:
        first, second = self.clusters
        return f"host=127.0.0.1,127.0.0.1 port={first.port},{second.port} target_session_attrs=read-write"

    def carry_slot(self, slot: str) -> None:
        """The standby gets the slot as it is now. Before 17 by copying its file, while the standby is down."""
        confirmed = self.primary.value("postgres", f"SELECT confirmed_flush_lsn {self._where(slot)}")
        if self.synchronises:
            wait_for(lambda: self.standby.value("postgres", "SELECT bool_and(synced AND NOT temporary AND "
                                                f"confirmed_flush_lsn >= '{confirmed}') {self._where(slot)}"),
                     2 * SECONDS, "the slot is synchronised")
            return
        wait_for(lambda: self._is_written(slot, confirmed), SECONDS, "the slot's file has its position", pause=0.3)
        self.standby.stop()
        copy = self.standby.directory / "pg_replslot" / slot
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.primary.directory / "pg_replslot" / slot, copy)
        for path in (copy, *copy.iterdir()):
            give_to_postgres(path)
        self.standby.start()

    def _is_written(self, slot: str, confirmed: str) -> bool:
        """A slot is written when it needs less WAL, which takes a record of the running transactions."""
        self.primary.sql("postgres", "CHECKPOINT")
        return bool(self.primary.value("postgres", f"SELECT restart_lsn >= '{confirmed}' {self._where(slot)}"))

    @staticmethod
    def _where(slot: str) -> str:
        return f"FROM pg_replication_slots WHERE slot_name = '{slot}'"

    def wait_standby(self) -> None:
        """Until the standby has what the primary has written by now."""
        written = self.primary.value("postgres", "SELECT pg_current_wal_flush_lsn()")
        wait_for(lambda: self.standby.value("postgres", f"SELECT pg_last_wal_replay_lsn() >= '{written}'"),
                 SECONDS, "the standby has caught up")

    def kill_primary(self) -> None:
        kill_postmaster(self.primary)

    def wait_for_no_standby(self) -> None:
        """The primary's slots go on without the standby, as they do where nobody has set it otherwise."""
        if self.synchronises:
            self.primary.sql("postgres", "ALTER SYSTEM SET synchronized_standby_slots = ''", "SELECT pg_reload_conf()")

    @contextmanager
    def standby_that_missed(self) -> Iterator[None]:
        """Stops the standby, so that it lacks the changes made meanwhile; then kills the primary, and promotes it."""
        self.wait_standby()
        self.standby.stop()
        yield
        self.kill_primary()
        self.standby.start()
        self.promote()

    def go_back(self) -> None:
        """The promoted server is away for good; the killed one comes back as it was."""
        self.primary.stop()
        self.primary, self.standby = self.standby, self.primary
        start_again(self.primary)

    def promote(self) -> None:
        assert self.standby.value("postgres", "SELECT pg_promote()")
        if self.synchronises:  # nobody follows the new primary: nothing waits for a standby
            self.standby.sql("postgres", "ALTER SYSTEM SET sync_replication_slots = off", "SELECT pg_reload_conf()")
        self.primary, self.standby = self.standby, self.primary

    def promote_again(self) -> None:
        """Another timeline of the same server: as after a second failover to a standby that lacks nothing."""
        self.primary.stop()
        self.primary.set(primary_conninfo="''", primary_slot_name="''")
        self._signal(self.primary)
        self.primary.start()
        assert self.primary.value("postgres", "SELECT pg_promote()")

    def stop(self) -> None:
        for cluster in self.clusters:
            cluster.stop("immediate")

    @staticmethod
    def _signal(cluster: Cluster) -> None:
        (cluster.directory / "standby.signal").touch()
        give_to_postgres(cluster.directory / "standby.signal")


class FailoverScene(Scene):
    """Its source is whichever of the servers takes changes now."""

    def __init__(self, servers: Servers, destination: Cluster, engine: Engine, database: str, libraries: bool) -> None:
        self.servers = servers
        super().__init__(servers.primary, destination, engine, database, libraries)

    @property
    def source(self) -> Cluster:
        return self.servers.primary

    @source.setter
    def source(self, _: Cluster) -> None:
        """As the servers say."""

    @property
    def source_conninfo(self) -> str:
        return f"{self.servers.address} dbname={self.database} user=thalweg password={PASSWORD}"

    def end(self, failed: bool) -> None:
        """Removes all of it; first the last words of an engine whose test has failed."""
        self.remove()
        if failed:
            print("--- the end of the engine's log")
            print("\n".join(self.engine.log.read_text(errors="replace").splitlines()[-60:]))
        for directory in (self.engine.directory, *(cluster.directory for cluster in self.servers.clusters)):
            shutil.rmtree(directory, ignore_errors=True)

    @property
    def slot(self) -> str:
        return f"thalweg_{self.stream}"

    def timeline(self, database: str = "") -> int:
        """That the destination has recorded."""
        return int(self.destination.value(database or self.database, "SELECT source_timeline FROM thalweg.stream"))

    def remove(self) -> None:
        self.engine.stop()
        self.destination.sql("postgres", f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')
        self.servers.stop()
