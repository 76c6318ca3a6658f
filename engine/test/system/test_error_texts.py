"""Messages about rows, which the destination has to store whatever bytes their keys have."""

from harness.engine import destination_path
from harness.scene import Scene

# Of 121 bytes: a message shows 64 of them, and the 64th is in the middle of a character.
LONG = "x" + "ä" * 60


def conflict(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE note (key text PRIMARY KEY, content text)")
    scene.start_stream(disable_on_error=False)
    scene.at_destination(f"INSERT INTO note VALUES ('{LONG}', 'theirs')")
    scene.at_source(f"INSERT INTO note VALUES ('{LONG}', 'ours')")
    scene.wait_applied()


def test_a_key_is_cut_between_two_characters(scene: Scene) -> None:
    conflict(scene)
    errors = scene.engine.request("GET", destination_path(scene.stream) + "/errors")
    assert f"= 'x{'ä' * 31}'...)" in errors["errors"][0]["message"]


def test_a_conflict_with_such_a_key_is_logged(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE note (key text PRIMARY KEY, content text)")
    scene.start_stream(conflict_handlers=[{"kind": "insert_exists", "action": "discard"}])
    scene.at_destination(f"INSERT INTO note VALUES ('{LONG}', 'theirs')")
    scene.at_source(f"INSERT INTO note VALUES ('{LONG}', 'ours')")
    scene.wait_applied()
    assert scene.at_destination("SELECT new_row ->> 'key' FROM thalweg.conflict_log") == [(LONG,)]


def test_a_key_that_the_destinations_encoding_lacks_is_parked(scene: Scene) -> None:
    scene.destination.leave(scene.database)
    scene.destination.sql(
        "postgres", f'DROP DATABASE "{scene.database}"',
        f"CREATE DATABASE \"{scene.database}\" OWNER thalweg TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    scene.libraries = False
    scene.run_at_source("CREATE TABLE note (key text PRIMARY KEY, content text)")
    scene.start_stream(disable_on_error=False)
    scene.at_source("INSERT INTO note VALUES ('łódź', 'x')", "INSERT INTO note VALUES ('Åre', 'y')")
    scene.wait_applied()
    errors = scene.engine.request("GET", destination_path(scene.stream) + "/errors")["errors"]
    assert [error["sqlstate"] for error in errors] == ["22P05"]
    assert r"= '\u{142}\u{f3}d\u{17a}')" in errors[0]["message"]
    assert scene.at_destination("TABLE note") == [("Åre", "y")]
