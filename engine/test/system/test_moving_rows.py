"""Conflicts with rows that somebody else at the destination moves while they are settled."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.scene import Scene

OVERWRITE = [{"kind": kind, "action": "overwrite"} for kind in ("insert_exists", "update_missing")]
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@contextmanager
def somebody(scene: Scene) -> Iterator[psycopg.Connection[Any]]:
    """Commits at the end."""
    with scene.destination.connect(scene.database) as connection, connection.transaction():
        yield connection


def wait_until_apply_waits(scene: Scene) -> None:
    wait_for(lambda: scene.at_destination(WAITING)[0][0] > 0, 30, "apply waits for a lock")


@pytest.fixture
def row(scene: Scene) -> Scene:
    scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY, content text); INSERT INTO item VALUES (1, 'a')")
    scene.start_stream(conflict_handlers=OVERWRITE)
    return scene


@pytest.mark.both_ways
def test_a_row_that_goes_before_it_is_overwritten(row: Scene) -> None:
    row.at_destination("INSERT INTO item VALUES (2, 'theirs')")
    with somebody(row) as connection:
        connection.execute("SELECT FROM item WHERE id = 2 FOR UPDATE")
        row.at_source("INSERT INTO item VALUES (2, 'ours')")
        wait_until_apply_waits(row)
        connection.execute("DELETE FROM item WHERE id = 2")
    row.wait_applied()
    row.assert_same()


@pytest.mark.both_ways
def test_a_row_that_comes_before_it_is_inserted(row: Scene) -> None:
    row.at_destination("DELETE FROM item")
    with somebody(row) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'theirs')")
        row.at_source("UPDATE item SET content = 'ours'")
        wait_until_apply_waits(row)
    row.wait_applied()
    row.assert_same()


def test_a_row_with_another_key_of_theirs_is_no_row_to_overwrite(row: Scene) -> None:
    row.at_destination("ALTER TABLE item ADD UNIQUE (content)", "INSERT INTO item VALUES (7, 'taken')")
    row.at_source("INSERT INTO item VALUES (2, 'taken')")
    assert row.engine.wait_aborted(row.stream)["code"] == "apply_conflict"
    assert row.at_destination("TABLE item ORDER BY id") == [(1, "a"), (7, "taken")]
