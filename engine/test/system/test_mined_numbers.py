"""Files of the source that share their number: PostgreSQL numbers those of temporary relations for themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster
from harness.engine import Engine
from harness.mining import TABLES, WANTED, start_mining
from harness.scene import Scene

NUMBER = "SELECT relfilenode::bigint FROM pg_class WHERE relname = '{}'"


@pytest.fixture
def scene(workspace: Path, destination_cluster: Cluster, libraries: bool) -> Iterator[Scene]:
    """Its source is its own: the counter of numbers is set back."""
    source = Cluster(workspace, "numbered", SETTINGS | SOURCE_SETTINGS)
    source.initialise()
    source.start()
    scene = Scene(source, destination_cluster, Engine(workspace / "engine-numbered"), "numbered", libraries)
    scene.make()
    yield scene
    scene.remove()
    source.stop("immediate")


def test_a_temporary_table_with_the_number_of_a_captured_one(scene: Scene) -> None:
    source = scene.source
    scene.run_at_source(TABLES)
    for _ in range(20):
        source.sql(scene.database, "VACUUM FULL accounts")  # each gives it another number
    number = int(source.value(scene.database, NUMBER.format("accounts")))
    source.leave(scene.database)
    source.stop("fast")
    source.reset_wal(f"--next-oid={number - 3000}")
    source.start()
    start_mining(scene, WANTED)
    with source.connect(scene.database) as session:
        session.execute("CREATE TEMP TABLE first (id int)")  # makes the session's schema, which takes numbers, too
        at = int(session.execute("SELECT lo_create(0)").fetchone()[0])
        while at < number - 1:
            taken = session.execute(f"SELECT max(lo_create(0)) FROM generate_series(1, {min(200, number - 1 - at)})")
            at = int(taken.fetchone()[0])
        session.execute("CREATE TEMP TABLE beside (id int)")
        assert int(source.value(scene.database, NUMBER.format("beside"))) == number, "the test has its case"
        scene.run_at_source("INSERT INTO accounts VALUES (9001, 'beside a temporary table')")
        session.execute("GRANT SELECT ON accounts TO PUBLIC")  # writes its row in pg_class anew
        scene.run_at_source("INSERT INTO accounts VALUES (9002, 'again')")
        scene.wait_applied()
    scene.assert_same(WANTED)
