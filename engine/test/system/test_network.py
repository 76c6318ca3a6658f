"""Two engines, the source and the destination on four hosts: slow links, and links that fall silent without a word."""

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from conftest import DESTINATION_SETTINGS, SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster
from harness.engine import Engine
from harness.network import Network, available
from harness.outage import assert_recovered, wait_retrying
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import Writers

# How soon each side of a database's connection misses the other; the defaults of half a minute would only make us wait.
# Acknowledgements from the destination are missed as in production.
IMPATIENT = {"keepalives_idle": "1", "keepalives_interval": "1", "keepalives_count": "2"}
ONE_WAY = 0.02  # seconds


class ImpatientScene(Scene):
    @property
    def source_conninfo(self) -> str:
        return self.source.conninfo(self.database, "thalweg", **IMPATIENT, tcp_user_timeout="3000")

    @property
    def destination_conninfo(self) -> str:
        return self.destination.conninfo(self.database, "thalweg", **IMPATIENT)


@pytest.fixture
def network() -> Iterator[Network]:
    if not available():
        pytest.skip("network namespaces need root and /dev/net/tun")
    network = Network("source", "alpha", "bravo", "destination")
    yield network
    network.close()


@pytest.fixture
def pair(network: Network, workspace: Path) -> Iterator[EnginePair]:
    directory = workspace / "network"
    directory.mkdir()
    directory.chmod(0o755)
    settings = SETTINGS | {"wal_sender_timeout": "'5s'"}
    source = Cluster(workspace, "far-source", settings | SOURCE_SETTINGS, network.places["source"])
    destination = Cluster(workspace, "far-destination", settings | DESTINATION_SETTINGS, network.places["destination"])
    for cluster in (source, destination):
        cluster.initialise()
        cluster.start()
    scene = ImpatientScene(source, destination, Engine(directory / "sender", place=network.places["alpha"]), "far")
    scene.make()
    pair = EnginePair(scene, directory, network.places["bravo"])
    yield pair
    pair.close()
    scene.engine.stop()
    for cluster in (source, destination):
        cluster.stop("immediate")
    shutil.rmtree(directory, ignore_errors=True)


def write(connection: psycopg.Connection[object], random_: random.Random, number: int) -> None:
    connection.execute("INSERT INTO event VALUES (%s, 'new') ON CONFLICT (id) DO UPDATE SET body = 'again'",
                       (random_.randrange(1_000_000),))
    time.sleep(0.01)  # the switch is no wire


def test_slow_and_silent_links(pair: EnginePair, network: Network, random_: random.Random) -> None:
    scene, stream = pair.scene, pair.scene.stream
    scene.run_at_source("CREATE TABLE event (id bigint PRIMARY KEY, body text);"
                        "INSERT INTO event SELECT n, 'copied' FROM generate_series(1, 20000) n;")
    pair.start_stream()
    network.delay(ONE_WAY)
    with Writers(scene.source, scene.database, 2, random_, write):
        pair.wait_applied()
        # The engines are cut off from each other, and one of them from the destination. Nobody hears a word of it.
        network.sever("destination", "bravo")
        wait_retrying(pair.receiver, stream, "connection_lost", "database_unreachable")
        network.sever("alpha", "bravo")
        wait_retrying(pair.sender, stream, "engine_unreachable", "link_lost", "link_refused", "receiver_restarted")
        network.mend()
        pair.wait_replicating()
        pair.wait_applied()
        network.sever("source", "alpha")
        wait_retrying(pair.sender, stream, "connection_lost", "database_unreachable")
        network.mend()
        pair.wait_replicating()
    pair.wait_applied()
    scene.assert_same()
    for engine in (pair.sender, pair.receiver):
        assert_recovered(engine, stream)
