"""Two clusters of the rig, and how troubles reach into them."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.servers import Cluster, postgres_binaries, unprivileged

SLOW_DISK = Path(__file__).with_name("slow_disk.c")


def build_slow_disk(directory: Path) -> Path:
    """The library that makes fsync, fdatasync and writes longer, by as many seconds as SLOW_DISK_SECONDS' file says."""
    library = directory / "slow_disk.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SLOW_DISK), "-ldl"], check=True)
    return library


def slow_spill(library: Path, seconds_file: Path) -> dict[str, str]:
    """For an engine: what it writes to its files takes as long as the file says."""
    return {"LD_PRELOAD": str(library), "SLOW_DISK_SECONDS": str(seconds_file), "SLOW_DISK_WRITES": "1"}


@dataclass
class Server:
    """A cluster that can be stopped and started again, with a disk that can be made slow."""

    cluster: Cluster
    library: Path
    seconds_file: Path

    def stop_server(self) -> None:
        unprivileged([f"{postgres_binaries()}/pg_ctl", "-D", self._data, "-m", "immediate", "stop"])

    def start_server(self) -> None:
        environment = {**os.environ, "LD_PRELOAD": str(self.library), "SLOW_DISK_SECONDS": str(self.seconds_file)}
        log = f"{self.cluster.directory}/log"
        unprivileged([f"{postgres_binaries()}/pg_ctl", "-D", self._data, "-w", "-l", log, "start"], environment)

    @property
    def _data(self) -> str:
        return f"{self.cluster.directory}/data"


@dataclass
class Bench:
    """One cause's databases on the two clusters."""

    source: Cluster
    destination: Server
    dbname: str
    engine_pids: list[int] = field(default_factory=list)

    def at_source(self, *statements: str) -> None:
        self.source.execute(*statements, dbname=self.dbname)

    def execute_source(self, *statements: str) -> None:
        self.source.execute(*statements)

    def at_destination(self, *statements: str) -> None:
        self.destination.cluster.execute(*statements, dbname=self.dbname)

    @property
    def source_conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.source.port} user=postgres dbname={self.dbname}"

    @property
    def destination_conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.destination.cluster.port} user=postgres dbname={self.dbname}"

    def slow_disk(self, seconds: float) -> None:
        self.destination.seconds_file.write_text(f"{seconds}\n")
