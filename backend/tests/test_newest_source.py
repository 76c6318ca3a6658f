"""A source of PostgreSQL 18 and a destination of the system's older release: virtual columns, keys over time, and what
else came with 18, is told before anything is made."""

from collections.abc import Generator
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of
from tests.support.real_engine import RealEngine
from tests.support.servers import Cluster
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_older_destination import as_reader, checks_of, ids, left_at, packaged_cluster, rows_of, source  # noqa: F401
from tests.test_real_engine import thalwegd  # noqa: F401
from thalweg.inspection.slots import read_slots
from thalweg.inspection.target import Target

STAYS = """
CREATE TABLE stays (
  id uuid DEFAULT uuidv7() PRIMARY KEY,
  room integer NOT NULL,
  during daterange CONSTRAINT some_time NOT NULL,
  price numeric CONSTRAINT positive CHECK (price > 0) NOT ENFORCED,
  CONSTRAINT one_guest UNIQUE (room, during WITHOUT OVERLAPS)
);
INSERT INTO stays (room, during, price) VALUES (1, '[2026-01-01,2026-01-03)', -3);
ALTER TABLE stays ADD COLUMN guest text;
INSERT INTO stays (room, during) VALUES (2, '[2026-01-01,2026-01-03)');
ALTER TABLE stays ADD CONSTRAINT guest_known NOT NULL guest NOT VALID;
"""
DOUBLED = "CREATE TABLE doubled (id integer PRIMARY KEY, twice integer GENERATED ALWAYS AS (id * 2) VIRTUAL)"


@pytest.fixture(scope="module")
def newer() -> Generator[Cluster, None, None]:
    with packaged_cluster(18) as cluster:
        yield cluster


def with_gist(cluster: Cluster, dbname: str) -> None:
    cluster.execute("CREATE EXTENSION btree_gist", dbname=dbname)


async def test_what_came_with_18_is_left_out_with_consent(
    operator: httpx.AsyncClient, ids: dict[str, str], source: Sides, sides: Sides, thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    with_gist(source.cluster, source.source["dbname"])
    as_reader(source, STAYS)
    before = left_at(source, sides)
    (lacks, *_) = (await checks_of(operator, ids, ["stays"]))["left_out_there"]["items"]
    assert "lacks the extension btree_gist" in lacks
    with_gist(sides.cluster, sides.destination["dbname"])
    checks = await checks_of(operator, ids, ["stays"])
    asked, names = checks["left_out_there"], checks["left_out"]
    assert names["items"] == [
        "NOT NULL that is not validated: public.stays (guest_known)",
        "names and NO INHERIT of NOT NULL: public.stays (guest_known), public.stays (some_time)",
    ]
    found = "\n".join(asked["items"])
    assert len(asked["items"]) == 3, found
    for part in ("default of id of", "uuidv7()", "constraint positive of", "constraint one_guest of"):
        assert part in found, found
    assert "PostgreSQL 18 of the source" in asked["cure"]
    assert left_at(source, sides) == before

    body = body_of(ids, rules={"include": [{"schema": "public", "table": "stays"}]})
    made = await operator.post(STREAMS, json={**body, "accept": [asked["consent"], names["consent"]]})
    assert made.status_code == 202, made.text
    await wait_for(operator, f"{STREAMS}/{made.json()['stream_id']}", phase="REPLICATING")
    as_reader(source, "INSERT INTO stays (room, during, price, guest) VALUES (1, '[2026-01-03,2026-01-04)', 8, 'Ada')")

    async def same() -> bool:
        query = "SELECT * FROM stays ORDER BY id"
        there = rows_of(sides.cluster, sides.destination, query)
        return len(there) == 3 and there == rows_of(source.cluster, source.source, query)

    await eventually(same)
    thalwegd.stop()

    async def slot_is_free() -> bool:
        return not source.cluster.value("SELECT bool_or(active) FROM pg_replication_slots")

    await eventually(slot_is_free)


async def test_a_table_with_a_virtual_column_is_refused(
    operator: httpx.AsyncClient, ids: dict[str, str], source: Sides, sides: Sides,  # noqa: F811
) -> None:  # fmt: skip
    as_reader(source, DOUBLED)
    before = left_at(source, sides)
    check = (await checks_of(operator, ids, ["doubled"]))["definitions"]
    assert check["status"] == "failed", check
    (item,) = check["items"]
    assert "doubled" in item and "VIRTUAL" in item
    assert "PostgreSQL 18 of the source" in check["cure"]
    body = body_of(ids, rules={"include": [{"schema": "public", "table": "doubled"}]})
    refused = await operator.post(STREAMS, json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "preflight_failed")
    assert left_at(source, sides) == before


async def test_how_long_a_slot_may_be_idle_is_read(
    operator: httpx.AsyncClient, ids: dict[str, str], source: Sides,  # noqa: F811
) -> None:  # fmt: skip
    """The setting has a unit of its own; Thalweg has seconds."""
    there = {name: source.source[name] for name in ("host", "port", "dbname", "user", "password", "sslmode")}
    assert (await read_slots(Target(**there), 10)).idle_timeout_seconds is None
    source.cluster.execute("SELECT pg_create_logical_replication_slot('idle', 'pgoutput')", dbname=there["dbname"])
    source.cluster.execute("ALTER SYSTEM SET idle_replication_slot_timeout = '2h'", "SELECT pg_reload_conf()")
    try:

        async def seconds() -> float | None:
            return (await read_slots(Target(**there), 10)).idle_timeout_seconds

        assert await eventually(seconds) == 7200
        slot = (await read_slots(Target(**there), 10)).slots["idle"]
        assert slot.idle_seconds is not None and 0 <= slot.idle_seconds < 600
        check = (await checks_of(operator, ids, ["orders"], "source"))["idle_slots"]
        assert (check["status"], check["sql"]) == ("warning", "ALTER SYSTEM SET idle_replication_slot_timeout = 0")
        assert check["detail"].startswith("idle_replication_slot_timeout is 2h: ")
        source.cluster.execute(check["sql"], "SELECT pg_reload_conf()")

        async def is_well() -> bool:
            return (await checks_of(operator, ids, ["orders"], "source"))["idle_slots"]["status"] == "ok"

        await eventually(is_well)
    finally:
        source.cluster.execute("ALTER SYSTEM RESET idle_replication_slot_timeout", "SELECT pg_reload_conf()")
