"""PostgreSQL 17 carries a stream's slot to the standby by itself, because the engine asks for that where it makes the
slot. Servers before 17 refuse the word: on those, all other tests would fail if the engine asked for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster, wait_for
from harness.engine import SECONDS, Engine
from harness.failover import SLOTS_ARE_SYNCHRONISED_FROM, FailoverScene, Servers
from harness.standby import programs_from
from harness.workload import make_pgbench_tables


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, destination_cluster: Cluster) -> Iterator[FailoverScene]:
    programs = programs_from(SLOTS_ARE_SYNCHRONISED_FROM // 10_000, workspace)
    servers = Servers(workspace, "failover-slots", SETTINGS | SOURCE_SETTINGS, programs=programs)
    assert servers.synchronises
    engine = Engine(workspace / "engine-failover-slots")
    scene = FailoverScene(servers, destination_cluster, engine, "f_slots", libraries=False)
    scene.make()
    yield scene
    scene.end(getattr(request.node, "failed", False))


def slots(server: Cluster) -> list[tuple[Any, ...]]:
    return server.sql("postgres", "SELECT slot_name, failover, temporary, synced FROM pg_replication_slots "
                                  "WHERE slot_type = 'logical'")


def test_the_slot_follows_a_failover_by_itself(scene: FailoverScene) -> None:
    make_pgbench_tables(scene.source, scene.database, scale=1)
    servers = scene.servers
    scene.start_stream()
    assert slots(servers.primary) == [(scene.slot, True, False, False)]
    scene.at_source("UPDATE pgbench_tellers SET tbalance = 1")
    scene.wait_applied()
    servers.carry_slot(scene.slot)
    assert slots(servers.standby) == [(scene.slot, True, False, True)]
    servers.wait_standby()
    servers.kill_primary()
    servers.promote()
    scene.wait_replicating()
    scene.at_source("UPDATE pgbench_tellers SET tbalance = 2")
    scene.wait_applied()
    scene.assert_same()
    assert scene.timeline() == 2
    assert [slot[:3] for slot in slots(servers.primary)] == [(scene.slot, True, False)]
    # A slot that is made at the new primary is one, too.
    scene.engine.drop_stream(scene.stream)
    wait_for(lambda: slots(servers.primary) == [], SECONDS, "the slot is gone")
    scene.at_destination("TRUNCATE pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers")
    scene.start_stream()
    assert slots(servers.primary) == [(scene.slot, True, False, False)]
