"""Tables whose names are exchanged at the source: transformations are bound to names, and must not be left behind."""

from typing import Any

import pytest

from harness.engine import RefusedError
from harness.scene import Scene
from harness.troubles import resolve, wait_resumed, wait_trouble
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
    define(scene, {})
    set_steps(scene, {"hidden": MASK})
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.run_at_source(EXCHANGE)
    for table in ("hidden", "open"):
        wait_trouble(scene, table, "REPLACED")
    for table in ("open", "hidden"):
        with pytest.raises(RefusedError, match='"open" is the table that was '):
            resolve(scene, table, "copy")
    set_steps(scene, {"hidden": MASK, "open": MASK})
    scene.engine.put_desired()
    for table in ("hidden", "open"):
        resolve(scene, table, "copy")
    for table in ("hidden", "open"):
        wait_resumed(scene, table)
    scene.wait_replicating()
    scene.at_source("INSERT INTO open VALUES (3, 'TOP SECRET')", "INSERT INTO hidden VALUES (3, 'known')")
    scene.wait_applied()
    assert scene.at_destination("TABLE open ORDER BY id") == [(1, "T*********"), (3, "T*********")]
    assert scene.at_destination("TABLE hidden ORDER BY id") == [(1, "k****"), (3, "k****")]
