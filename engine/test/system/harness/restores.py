"""A destination's server that is replaced by an earlier base backup of it, as an administrator restores one."""

import shutil
from pathlib import Path

from harness.cluster import PASSWORD, Cluster
from harness.engine import Engine
from harness.relay import Relay
from harness.scene import Scene
from harness.workspace import give_to_postgres


class RestoredScene(Scene):
    """Its destination is a cluster of the test's own, behind a relay: nobody comes before the restore is complete."""

    def __init__(self, source: Cluster, destination: Cluster, engine: Engine, database: str) -> None:
        super().__init__(source, destination, engine, database)
        self.relay = Relay(destination.port)

    @property
    def destination_conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.relay.port} dbname={self.database} user=thalweg password={PASSWORD}"

    def remove(self) -> None:
        super().remove()
        self.relay.close()


class Backup:
    """A base backup, taken while the server runs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.directory = cluster.directory.with_name(f"{cluster.name}-backup")
        cluster.back_up(self.directory)

    def put_back(self, *, recovers: bool = False) -> None:
        """The server is lost, and started from the backup. `recovers`: on a timeline of its own, as after PITR."""
        self.cluster.stop("immediate")
        shutil.rmtree(self.cluster.directory)
        shutil.copytree(self.directory, self.cluster.directory)
        if recovers:
            self.cluster.set(restore_command="'false'")
            (self.cluster.directory / "recovery.signal").touch()
        for path in (self.cluster.directory, *self.cluster.directory.rglob("*")):
            give_to_postgres(path)
        self.cluster.directory.chmod(0o700)
        self.cluster.start()
        self.cluster.wait_ready()


def own_destination(workspace: Path, name: str, settings: dict[str, str]) -> Cluster:
    cluster = Cluster(workspace, name, settings)
    cluster.initialise()
    cluster.start()
    return cluster
