"""Code that the source's definitions call runs at no destination before somebody has accepted it, however late the
definition came: the role that applies may be able to do more than the source's owner."""

import hashlib
from collections.abc import Iterator

import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS, RefusedError
from harness.scene import Scene
from harness.troubles import resolve, table_of

PAIR = """CREATE TABLE kept (id integer PRIMARY KEY, body text);
          CREATE TABLE hit (id integer PRIMARY KEY, body text);
          INSERT INTO kept VALUES (1, 'one'); INSERT INTO hit SELECT n, 'old' FROM generate_series(1, 100) n;"""
LATER = "ALTER TABLE hit ADD CONSTRAINT later CHECK (spy(body))"
DONE = "SELECT bool_and(constraints_done AND NOT copy_again) FROM thalweg.stream_table"
CHECKED = "SELECT count(*) FROM pg_constraint WHERE conname = 'later'"


@pytest.fixture(autouse=True)
def spy(scene: Scene) -> Iterator[None]:
    """A function that leaves a trace at the destination, where the role that applies has powers."""
    scene.at_source("CREATE FUNCTION spy(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'")
    scene.at_destination(
        "CREATE TABLE spied (what text)", "GRANT INSERT ON spied TO thalweg",
        "CREATE FUNCTION spy(text) RETURNS boolean LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO public.spied VALUES ($1); RETURN true; END'",
        "ALTER ROLE thalweg CREATEDB",
    )
    yield
    scene.at_destination("ALTER ROLE thalweg NOCREATEDB")


def spied(scene: Scene) -> int:
    return int(scene.destination.value(scene.database, "SELECT count(*) FROM spied"))


def set_accepted(scene: Scene, *definitions: str, tables: tuple[str, ...] = ("kept", "hit")) -> None:
    """Of the table hit."""
    digests = [hashlib.sha256(definition.encode()).hexdigest() for definition in definitions]
    scene.engine.set_stream(scene.stream, tables=[
        {"schema": "public", "table": table, **({"accepted_code": digests} if table == "hit" and digests else {})}
        for table in tables])


def copy_again(scene: Scene, table: str) -> None:
    resolve(scene, table, "copy")
    # Not only made: until it is noted so, a start judges it again.
    wait_for(lambda: scene.at_destination(DONE) == [(True,)], SECONDS, "the constraint has followed the rows")
    assert scene.at_destination(CHECKED) == [(1,)]
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_a_copy_again_of_what_came_after_the_consent_is_refused(scene: Scene) -> None:
    scene.run_at_source(PAIR)
    scene.start_stream()
    scene.run_at_source(LATER)
    with pytest.raises(RefusedError) as refused:
        resolve(scene, "hit", "copy")
    error = refused.value.error
    assert error["code"] == "code_not_accepted"
    assert '"public"."hit" (constraint later) calls public.spy(text)' in error["message"]
    assert "as thalweg, who has CREATEDB" in error["message"]
    # The table goes on as it was, and the others do.
    scene.at_source("INSERT INTO kept VALUES (2, 'two')", "UPDATE hit SET body = 'new' WHERE id <= 50")
    scene.wait_applied()
    scene.assert_same()
    assert table_of(scene, "hit")["state"] == "REPLICATING"
    assert (spied(scene), scene.at_destination(CHECKED)) == (0, [(0,)])

    # Only one definition is accepted, not every call of the function.
    set_accepted(scene, "constraint public.spy('body'::text)")
    scene.wait_replicating()
    with pytest.raises(RefusedError):
        resolve(scene, "hit", "copy")
    set_accepted(scene, "constraint public.spy(body)")
    scene.wait_replicating()
    copy_again(scene, "hit")
    assert spied(scene) >= 100

    # A stream of a document that says nothing of it, of an older version's, goes on with what it has made.
    set_accepted(scene)
    scene.wait_replicating()
    scene.at_source("INSERT INTO hit VALUES (1000, 'after')")
    scene.wait_applied()
    scene.assert_same()


def test_a_start_after_a_pause_makes_nothing_that_came_after_the_consent(scene: Scene) -> None:
    scene.run_at_source(PAIR)
    scene.start_stream([("public", "kept")])
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    set_accepted(scene)
    scene.run_at_source(LATER)
    scene.engine.set_stream(scene.stream, status="ENABLED")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("code_not_accepted", '"public"."hit"')
    assert scene.at_destination("SELECT to_regclass('public.hit')") == [(None,)]
    assert spied(scene) == 0
    # It goes on once somebody has accepted it, with nothing lost.
    scene.at_source("INSERT INTO kept VALUES (2, 'two')", "DELETE FROM hit WHERE id = 7")
    set_accepted(scene, "constraint public.spy(body)")
    scene.wait_replicating()
    wait_for(lambda: table_of(scene, "hit")["state"] == "REPLICATING", SECONDS, "hit has been copied")
    scene.wait_applied()
    scene.assert_same()
    assert scene.at_destination(CHECKED) == [(1,)]


def test_a_type_of_the_destinations_is_code_too(scene: Scene) -> None:
    """The source's domain checks nothing; the destination's, of the same name, calls a function."""
    scene.at_source("CREATE DOMAIN word AS text")
    scene.at_destination("CREATE DOMAIN word AS text CHECK (spy(VALUE))")
    scene.run_at_source(PAIR)
    scene.start_stream()
    scene.run_at_source("ALTER TABLE hit ADD CONSTRAINT later CHECK ((body::word) IS NOT NULL)")
    with pytest.raises(RefusedError) as refused:
        resolve(scene, "hit", "copy")
    error = refused.value.error
    assert error["code"] == "code_not_accepted"
    assert '"public"."hit" (constraint later) uses the type public.word' in error["message"]
    assert spied(scene) == 0
    set_accepted(scene, "constraint (((body)::public.word)::text IS NOT NULL)",
                 "constraint ((body)::public.word IS NOT NULL)")
    scene.wait_replicating()
    copy_again(scene, "hit")
    assert spied(scene) >= 100


def test_a_role_without_powers_needs_no_consent(scene: Scene) -> None:
    scene.at_destination("ALTER ROLE thalweg NOCREATEDB")
    scene.run_at_source(PAIR)
    scene.start_stream()
    scene.run_at_source(LATER)
    copy_again(scene, "hit")
