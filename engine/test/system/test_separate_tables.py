"""Tables that are replicated by themselves, and partitions of each other at the destination."""

from harness.scene import Scene
from harness.troubles import resolve, wait_resumed
from test_table_troubles import EVENTS


def test_a_copy_deletes_no_rows_of_another_table(scene: Scene) -> None:
    """A table that was detached at the source, joined the stream, and is still a partition at the destination."""
    scene.run_at_source(EVENTS)
    scene.destination.run_script(scene.database, "SET ROLE thalweg;\n" + EVENTS.rsplit("INSERT", 1)[0])
    scene.at_source("ALTER TABLE event DETACH PARTITION event_2", "DELETE FROM event_2")
    scene.start_stream()  # with both tables, of which one has no rows yet
    assert sorted(table["table"] for table in scene.engine.streams[scene.stream]["tables"]) == ["event", "event_2"]
    scene.at_source("INSERT INTO event_2 SELECT n, 2, 'later' FROM generate_series(1, 70) n")
    scene.wait_applied()
    assert scene.at_destination("SELECT count(*) FROM event_2") == [(70,)]
    resolve(scene, "event", "copy")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("destination_table_differs", '"public"."event"')
    assert 'DETACH PARTITION "public"."event_2"' in error["message"]
    assert scene.at_destination("SELECT count(*) FROM event_2") == [(70,)]
    scene.at_destination("ALTER TABLE event DETACH PARTITION event_2")
    scene.engine.retry(scene.stream)
    wait_resumed(scene, "event")
    scene.wait_applied()
    scene.assert_same()
