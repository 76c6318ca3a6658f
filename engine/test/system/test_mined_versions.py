"""Log mining of sources of other PostgreSQL versions than the one under test, through kills of engine and source."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaged_servers import RELEASES, packaged_server

from conftest import SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster
from harness.crashes import crash_source, kill_engine
from harness.engine import SECONDS, Engine
from harness.mining import TABLES, WANTED, RandomWork, change_schema, part, start_mining
from harness.scene import Scene


@pytest.fixture(params=RELEASES)
def scene(request: pytest.FixtureRequest, workspace: Path, destination_cluster: Cluster) -> Iterator[Scene]:
    """The source is of the release, the destination as in other tests."""
    release: int = request.param
    name = f"source-{release}"
    source = Cluster(workspace, name, SETTINGS | SOURCE_SETTINGS, programs=packaged_server(release, workspace))
    source.initialise()
    source.start()
    scene = Scene(source, destination_cluster, Engine(workspace / f"engine-of-{name}"), f"v{release}")
    scene.make()
    yield scene
    scene.remove()
    source.stop("immediate")


def test_rows_are_the_same_through_kills(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(TABLES)
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED)
        for n, fault in enumerate((kill_engine, crash_source, kill_engine)):
            work.wait_for_more(random_.randint(20, 60))
            change_schema(scene, n)
            fault(scene)
        work.wait_for_more(20)
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)
    assert part(scene, "LOGMINER BUILDER")["counters"]["records"] > 0
