"""The machines of a run: a source, a destination and an engine, all of them real and for this run only."""

from pathlib import Path
from types import TracebackType

from harness.cluster import Cluster
from harness.engine import Engine
from harness.processes import cpu_seconds
from harness.workspace import make_workspace, remove_workspace

SOURCE_DATABASE = "bench"
SEGMENTS = 60  # files of 16 MB that either server begins with, less than min_wal_size
# The same for both servers and all methods. wal_retrieve_retry_interval is native's start-up wait: at its default of
# 5 s the launcher alone would cost native half its rate. Checkpoints are rare and each measurement begins with one.
SETTINGS = {
    "wal_level": "logical", "shared_buffers": "'512MB'", "max_wal_size": "'16GB'", "min_wal_size": "'1GB'",
    "checkpoint_timeout": "'30min'",
    "wal_retrieve_retry_interval": "'10ms'", "autovacuum": "off", "max_replication_slots": "100",
    "max_wal_senders": "100", "max_connections": "100", "log_checkpoints": "off",
}


class Rig:
    """Owner: one thread. Use it in a with statement, which starts all and ends all."""

    def __init__(self, keep: bool, **settings: str) -> None:
        self.keep = keep
        self.workspace: Path = make_workspace("thalweg-bench")
        everywhere = SETTINGS | {"unix_socket_directories": f"'{self.workspace}'"} | settings
        self.source = Cluster(self.workspace, "source", everywhere)
        self.destination = Cluster(self.workspace, "destination", everywhere)
        self.engine = Engine(self.workspace / "engine")

    def __enter__(self) -> "Rig":
        try:
            for cluster in (self.source, self.destination):
                cluster.initialise()
                cluster.start()
                _touch_buffers(cluster)
                _make_segments(cluster)
            self.engine.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        self.engine.stop()
        for cluster in (self.destination, self.source):
            cluster.stop("immediate")
        if not self.keep:
            remove_workspace(self.workspace)

    def checkpoint(self) -> None:
        """Both servers begin a measurement with the same debts: none."""
        for cluster in (self.source, self.destination):
            cluster.sql("postgres", "CHECKPOINT")

    def cpu(self) -> tuple[float, float, float]:
        """Seconds that source, engine and destination have used so far."""
        return (cpu_seconds(self.source.postmaster()), cpu_seconds(self.engine.pid),
                cpu_seconds(self.destination.postmaster()))

    def wal(self) -> tuple[int, int]:
        """Bytes of WAL that source and destination have written so far."""
        source, destination = (int(cluster.value("postgres", "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), "
                                                             "'0/0')")) for cluster in (self.source, self.destination))
        return source, destination


def _touch_buffers(cluster: Cluster) -> None:
    """The system hands shared memory out page by page, zeroed when first used: a fresh server's first consumer would
    pay for the others, a quarter of its time in a drain of TPC-B."""
    pages = int(cluster.value("postgres", "SELECT setting::int + 100 FROM pg_settings WHERE name = 'shared_buffers'"))
    cluster.sql("postgres", "CREATE UNLOGGED TABLE touched (filler text)",
                "ALTER TABLE touched ALTER filler SET STORAGE PLAIN",
                f"INSERT INTO touched SELECT repeat('x', 7000) FROM generate_series(1, {pages})", "DROP TABLE touched")


def _make_segments(cluster: Cluster) -> None:
    """A server that has run for a while writes its WAL into files that it has used before. A fresh one fills a new file
    with zeros and waits for the disk every 16 MB, and so does every commit meanwhile: more than a hundredth of the time
    at 4 MB a second."""
    for _ in range(SEGMENTS):
        cluster.sql("postgres", "SELECT pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()")
    cluster.sql("postgres", "CHECKPOINT")


def used(before: tuple[float, float, float], after: tuple[float, float, float]) -> tuple[float, float, float]:
    return (after[0] - before[0], after[1] - before[1], after[2] - before[2])
