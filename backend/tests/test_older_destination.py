"""A source of PostgreSQL 17 and a destination of the system's older release: what that one cannot have is told by name
before anything is made, and the stream runs without it once that is accepted."""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from packaged_servers import packaged_server

from tests.conftest import Sides, made_sides
from tests.features.test_streams import STREAMS, body_of
from tests.support.real_engine import RealEngine
from tests.support.servers import Cluster, postgres_binaries, start_cluster
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import enrol, thalwegd  # noqa: F401

NEW_RELEASE = 17
pytestmark = pytest.mark.skipif(
    int(postgres_binaries().parent.name) >= NEW_RELEASE, reason="the system's server has all that the test uses"
)
# Each line is something that tables have from 16 or 17 on.
PRICES = """
CREATE TABLE prices (
  id bigint PRIMARY KEY,
  lot integer DEFAULT random(1, 2),
  valid interval DEFAULT 'infinity',
  terms text CONSTRAINT terms_form CHECK (terms IS JSON OBJECT),
  code text CONSTRAINT code_assigned CHECK (unicode_assigned(code))
);
CREATE INDEX prices_bits ON prices (to_bin(lot));
INSERT INTO prices VALUES (1, 2, '1 day', '{"net": 30}', 'a');
"""
BOOKINGS = """
CREATE TABLE bookings (id bigint, room integer, PRIMARY KEY (room, id), EXCLUDE USING btree (room WITH =, id WITH =))
  PARTITION BY LIST (room);
CREATE TABLE bookings_1 PARTITION OF bookings FOR VALUES IN (1);
INSERT INTO bookings VALUES (1, 1);
"""
# No table without these.
SORTED = "CREATE TABLE sorted (id bigint PRIMARY KEY, name text COLLATE pg_c_utf8)"
COMPUTED = "CREATE TABLE computed (id integer PRIMARY KEY, bits text GENERATED ALWAYS AS (to_bin(id)) STORED)"
KEPT = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"


@contextmanager
def packaged_cluster(release: int) -> Generator[Cluster, None, None]:
    workspace = Path(tempfile.mkdtemp(prefix=f"thalweg-test-{release}-"))
    workspace.chmod(0o755)
    cluster = start_cluster(packaged_server(release, workspace))
    yield cluster
    cluster.stop()
    shutil.rmtree(workspace)


@pytest.fixture(scope="module")
def newer() -> Generator[Cluster, None, None]:
    with packaged_cluster(NEW_RELEASE) as cluster:
        yield cluster


@pytest.fixture
def source(newer: Cluster) -> Generator[Sides, None, None]:
    with made_sides(newer) as made:
        yield made
        newer.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")


@pytest.fixture
async def ids(admin: httpx.AsyncClient, source: Sides, sides: Sides, thalwegd: RealEngine) -> dict[str, str]:  # noqa: F811
    assert (await enrol(admin, thalwegd)).status_code == 201
    made = {}
    for side, body in (("source", source.source), ("destination", sides.destination)):
        answer = await admin.post("/api/v1/databases", json=body)
        assert answer.status_code == 201, answer.text
        made[side] = answer.json()["id"]
    return made


def as_reader(source: Sides, script: str) -> None:
    source.on_source(f"SET ROLE {source.source['user']}; {script}")


def rows_of(cluster: Cluster, database: dict[str, Any], query: str) -> list[tuple[Any, ...]]:
    target = {"host": "127.0.0.1", "port": cluster.port, "user": "postgres", "dbname": database["dbname"]}
    with psycopg.connect(**target, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def left_at(source: Sides, sides: Sides) -> tuple[Any, ...]:
    """All that a preflight, or a refused stream, must leave as it is."""
    return (
        rows_of(sides.cluster, sides.destination, KEPT),
        rows_of(sides.cluster, sides.destination, "SELECT nspname FROM pg_namespace ORDER BY 1"),
        rows_of(source.cluster, source.source, KEPT),
        rows_of(source.cluster, source.source, "SELECT pubname FROM pg_publication"),
        rows_of(source.cluster, source.source, "SELECT slot_name FROM pg_replication_slots"),
    )


async def checks_of(
    client: httpx.AsyncClient, ids: dict[str, str], tables: list[str], side: str = "destination"
) -> dict[str, dict[str, Any]]:
    rules = {"include": [{"schema": "public", "table": table} for table in tables]}
    body = {"source_id": ids["source"], "destinations": [{"database_id": ids["destination"]}], "rules": rules}
    answer = await client.post("/api/v1/preflights", json=body)
    assert answer.status_code == 200, answer.text
    return {check["id"]: check for check in answer.json()["checks"] if check["side"] == side}


async def test_what_the_older_release_lacks_is_left_out_with_consent(
    operator: httpx.AsyncClient, ids: dict[str, str], source: Sides, sides: Sides, thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    as_reader(source, PRICES + BOOKINGS)
    before = left_at(source, sides)
    tables = ["prices", "bookings"]
    checks = await checks_of(operator, ids, tables)
    asked = checks["left_out_there"]
    assert asked["status"] == "consent", asked
    missing = ("default of lot of", "default of valid of", "constraint terms_form of", "constraint code_assigned of",
               "index prices_bits of", "constraint bookings_room_id_excl of")  # fmt: skip
    found = "\n".join(asked["items"])
    for part in missing:
        assert part in found, found
    assert len(asked["items"]) == len(missing), found
    assert asked["cure"].startswith("PostgreSQL ") and asked["cure"].count(".") == 1, "one cure for all of it"
    assert f"PostgreSQL {NEW_RELEASE} of the source" in asked["cure"]
    assert "random(integer, integer)" in found
    assert "to_bin(integer)" in found
    assert checks["definitions"]["status"] == "ok", checks["definitions"]
    assert left_at(source, sides) == before, "a preflight makes and drops nothing"

    body = body_of(ids, rules={"include": [{"schema": "public", "table": table} for table in tables]})
    refused = await operator.post(STREAMS, json=body)
    assert refused.status_code == 409, refused.text
    assert "left_out_there" in refused.text
    assert left_at(source, sides) == before, "nor does a stream that is refused"

    assert checks["intervals"]["status"] == "consent", checks["intervals"]
    assert "public.prices." in checks["intervals"]["detail"] and "bookings" not in checks["intervals"]["detail"]
    made = await operator.post(STREAMS, json={**body, "accept": [asked["consent"], checks["intervals"]["consent"]]})
    assert made.status_code == 202, made.text
    await wait_for(operator, f"{STREAMS}/{made.json()['stream_id']}", phase="REPLICATING")
    as_reader(source, "INSERT INTO prices (id, valid) VALUES (2, '2 days'); INSERT INTO bookings VALUES (2, 1);")

    async def same() -> bool:
        return all(
            rows_of(source.cluster, source.source, query) == rows_of(sides.cluster, sides.destination, query)
            for query in ("SELECT * FROM prices ORDER BY id", "SELECT * FROM bookings ORDER BY id")
        )

    await eventually(same)
    at_destination = rows_of(
        sides.cluster, sides.destination,
        "SELECT (SELECT count(*) FROM pg_attrdef WHERE adrelid IN ('prices'::regclass, 'bookings'::regclass)), "
        "(SELECT count(*) FROM pg_constraint WHERE contype IN ('c', 'x') AND connamespace = 'public'::regnamespace), "
        "(SELECT count(*) FROM pg_class WHERE relname = 'prices_bits')",
    )  # fmt: skip
    assert at_destination == [(0, 0, 0)]
    thalwegd.stop()

    async def slot_is_free() -> bool:
        return not source.cluster.value("SELECT bool_or(active) FROM pg_replication_slots")

    await eventually(slot_is_free)


@pytest.mark.parametrize(
    ("definition", "table", "named"), [(SORTED, "sorted", "pg_c_utf8"), (COMPUTED, "computed", "to_bin(integer)")]
)
async def test_a_table_that_the_older_release_cannot_have_is_refused(
    operator: httpx.AsyncClient, ids: dict[str, str], source: Sides, sides: Sides, definition: str, table: str,
    named: str,
) -> None:  # fmt: skip
    as_reader(source, definition)
    before = left_at(source, sides)
    checks = await checks_of(operator, ids, [table])
    check = checks["definitions"]
    assert checks["intervals"]["status"] == "ok"
    assert check["status"] == "failed", check
    (item,) = check["items"]
    assert table in item and named in item
    assert f"PostgreSQL {NEW_RELEASE} of the source" in check["cure"]
    body = body_of(ids, rules={"include": [{"schema": "public", "table": table}]})
    refused = await operator.post(STREAMS, json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "preflight_failed")
    assert left_at(source, sides) == before


SEATS = """
CREATE TABLE seats (id bigint PRIMARY KEY, seat integer, CONSTRAINT one_seat UNIQUE NULLS NOT DISTINCT (seat));
INSERT INTO seats VALUES (1, NULL);
"""


@pytest.fixture
def oldest(sides: Sides) -> Generator[Sides, None, None]:
    """A destination of PostgreSQL 14, where only superusers may set session_replication_role."""
    with packaged_cluster(14) as cluster:
        cluster.execute("CREATE ROLE writer SUPERUSER LOGIN PASSWORD 'secret of writer'")
        cluster.execute("CREATE DATABASE warehouse OWNER writer")
        body = {**sides.destination, "port": cluster.port, "dbname": "warehouse", "user": "writer"}
        yield Sides(cluster, sides.source, body)


async def test_nulls_that_collide_are_left_out_where_14_has_no_such_key(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, sides: Sides, oldest: Sides, thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    assert (await enrol(admin, thalwegd)).status_code == 201
    bodies = {"source": sides.source, "destination": oldest.destination}
    made = {side: (await admin.post("/api/v1/databases", json=body)).json()["id"] for side, body in bodies.items()}
    as_reader(sides, SEATS)
    checks = await checks_of(operator, made, ["seats"])
    asked = checks["left_out_there"]
    assert asked["status"] == "consent", checks
    (item,) = asked["items"]
    assert "constraint one_seat of" in item and "seats" in item
    body = body_of(made, rules={"include": [{"schema": "public", "table": "seats"}]})
    assert (await operator.post(STREAMS, json=body)).status_code == 409
    answer = await operator.post(STREAMS, json={**body, "accept": [asked["consent"]]})
    assert answer.status_code == 202, answer.text
    path = f"{STREAMS}/{answer.json()['stream_id']}"
    await wait_for(operator, path, phase="REPLICATING")
    # A row takes the place of the one whose null it would collide with at the source.
    as_reader(sides, "BEGIN; DELETE FROM seats; INSERT INTO seats VALUES (2, NULL), (3, 7); COMMIT")

    async def same() -> bool:
        query = "SELECT id, seat FROM seats ORDER BY id"
        there = rows_of(oldest.cluster, oldest.destination, query)
        return there == rows_of(sides.cluster, sides.source, query) == [(2, None), (3, 7)]

    await eventually(same)
    keys = "SELECT count(*) FROM pg_constraint WHERE conrelid = 'seats'::regclass AND contype = 'u'"
    assert rows_of(oldest.cluster, oldest.destination, keys) == [(0,)]
    deleted = (await operator.delete(path)).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{deleted}", state="succeeded")
