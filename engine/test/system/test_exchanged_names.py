"""Tables whose names are exchanged at the source: transformations are bound to names, and must not be left behind."""

from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS, RefusedError
from harness.scene import Scene
from harness.troubles import copy_again, resolve, states_of, wait_trouble
from test_rules import define

MASK = [{"type": "mask_column", "column": "content", "with": "partial", "keep_first": 1, "keep_last": 0}]
EXCHANGE = """BEGIN; ALTER TABLE open RENAME TO aside; ALTER TABLE hidden RENAME TO open;
              ALTER TABLE aside RENAME TO hidden; COMMIT;"""


def set_steps(scene: Scene, steps: dict[str, list[dict[str, Any]]]) -> None:
    for table in scene.engine.streams[scene.stream]["tables"]:
        table["transformations"] = steps.get(table["table"], [])


def test_a_copy_sends_nothing_in_the_clear_that_was_masked_under_another_name(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE hidden (id integer PRIMARY KEY, content text);"
                        "CREATE TABLE open (id integer PRIMARY KEY, content text);"
                        "INSERT INTO hidden VALUES (1, 'TOP SECRET'); INSERT INTO open VALUES (1, 'known');")
    define(scene, {}, on_table_trouble="stop_table")
    set_steps(scene, {"hidden": MASK})
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.run_at_source(EXCHANGE)
    for table in ("hidden", "open"):
        wait_trouble(scene, table, "REPLACED")
    for table in ("open", "hidden"):
        with pytest.raises(RefusedError, match='"open" is the table that was '):
            resolve(scene, table, "copy")
    # Nor by way of taking the table out and putting it back.
    tables = scene.engine.streams[scene.stream]["tables"]
    scene.engine.streams[scene.stream]["tables"] = [table for table in tables if table["table"] != "open"]
    scene.engine.put_desired()
    known = "SELECT 1 FROM thalweg.stream_table WHERE table_name = 'open'"
    wait_for(lambda: not scene.at_destination(known) and states_of(scene) == {("hidden", "STOPPED")}, SECONDS,
             "it is taken out, and a session has begun without it")
    scene.engine.streams[scene.stream]["tables"] = tables
    scene.engine.put_desired()
    assert scene.engine.wait_aborted(scene.stream)["code"] == "transformation_refused"
    assert "TOP SECRET" not in str(scene.at_destination("TABLE open"))
    scene.at_destination("TRUNCATE open")
    set_steps(scene, {"hidden": MASK, "open": MASK})
    scene.engine.put_desired()
    copy_again(scene, "hidden")
    wait_for(lambda: states_of(scene) == {("hidden", "REPLICATING"), ("open", "REPLICATING")}, SECONDS,
             "both are there")
    scene.at_source("INSERT INTO open VALUES (3, 'TOP SECRET')", "INSERT INTO hidden VALUES (3, 'known')")
    scene.wait_applied()
    assert scene.at_destination("TABLE open ORDER BY id") == [(1, "T*********"), (3, "T*********")]
    assert scene.at_destination("TABLE hidden ORDER BY id") == [(1, "k****"), (3, "k****")]
