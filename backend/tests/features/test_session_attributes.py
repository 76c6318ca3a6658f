"""`target_session_attrs` of a database, at a real primary and its standby: it chooses the server, and what the control
plane sets in its own sessions has no say in it."""

from collections.abc import Generator
from typing import Any

import httpx
import pytest
from psycopg import errors

from tests.conftest import Sides
from tests.features.test_databases import PATH, try_settings
from tests.features.test_read_from_standby import Pair, made_pair
from tests.support.servers import postgres_binaries
from thalweg.inspection.connection import connected, read_row
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import Target


@pytest.fixture(scope="module")
def pair() -> Generator[Pair, None, None]:
    with made_pair(postgres_binaries(), hot_standby_feedback="on") as made:
        yield made


def hosts(pair: Pair, *, standby_first: bool) -> str:
    ports = (pair.standby.port, pair.primary.port) if standby_first else (pair.primary.port, pair.standby.port)
    return ",".join(f"127.0.0.1:{port}" for port in ports)


def target(pair: Pair, wanted: str, *, standby_first: bool) -> Target:
    fields: dict[str, Any] = {field: pair.settings[field] for field in ("dbname", "user", "password", "sslmode")}
    return Target(
        host=hosts(pair, standby_first=standby_first), port=5432, options={"target_session_attrs": wanted}, **fields
    )


@pytest.mark.parametrize(
    ("wanted", "at_standby"),
    [("read-write", False), ("primary", False), ("read-only", True), ("standby", True), ("prefer-standby", True)],
)
@pytest.mark.parametrize("read_only", [True, False], ids=["looks", "writes"])
async def test_it_leads_to_the_server_that_it_names(pair: Pair, wanted: str, at_standby: bool, read_only: bool) -> None:
    """In either order of the two."""
    for standby_first in (True, False):
        at = target(pair, wanted, standby_first=standby_first)
        async with connected(at, 10, read_only=read_only) as connection:
            row = await read_row(
                connection,
                "SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only",
            )
        assert row == {"standby": at_standby, "read_only": "on" if at_standby or read_only else "off"}


async def test_looks_change_nothing(pair: Pair) -> None:
    with pytest.raises(ConnectionFailure) as refused:
        async with connected(target(pair, "read-write", standby_first=False), 10) as connection:
            await connection.execute("CREATE TABLE mistake (id int)")
    assert refused.value.sqlstate == errors.ReadOnlySqlTransaction.sqlstate


async def test_databases_of_the_upkeep_guide_are_ready_on_both_sides(admin: httpx.AsyncClient, pair: Pair) -> None:
    """docs/guides/upkeep.md registers a source, and a destination, in this way for a failover."""
    for role, side in (("source", pair.sides.source), ("destination", pair.sides.destination)):
        credentials = f"{side['user']}:{side['password'].replace(' ', '%20')}"
        uri = (
            f"postgresql://{credentials}@127.0.0.1:{pair.standby.port},127.0.0.1:{pair.primary.port}/{side['dbname']}"
            "?target_session_attrs=read-write&sslmode=prefer"
        )
        made = (await admin.post(PATH, json={"name": role, "uri": uri})).json()
        tested = (await admin.post(f"{PATH}/{made['id']}/test")).json()
        assert (tested["code"], tested["message"]) == (None, None)
        preflight = (await admin.get(f"{PATH}/{made['id']}/preflight", params={"role": role})).json()
        assert preflight["ready"], [check for check in preflight["checks"] if check["status"] == "failed"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("read-only", "Session is not read-only"), ("standby", "Server is not in hot standby mode")],
)
async def test_a_server_of_another_kind_is_named_as_such(
    operator: httpx.AsyncClient, sides: Sides, wanted: str, said: str
) -> None:
    found = await try_settings(operator, sides.source, options={"target_session_attrs": wanted})
    assert (found["code"], found["reachable"]) == ("database_error", True)
    assert f"No server that answers is {wanted}" in found["message"]
    assert said in found["message"]
    assert "target_session_attrs" in found["cure"]


async def test_a_role_that_only_reads_is_no_session_that_writes(operator: httpx.AsyncClient, sides: Sides) -> None:
    sides.cluster.execute(f"ALTER ROLE {sides.source['user']} SET default_transaction_read_only = on")
    found = await try_settings(operator, sides.source, options={"target_session_attrs": "read-write"})
    assert "Session is read-only" in found["message"]
    assert "default_transaction_read_only" in found["cure"]
    readable = await try_settings(operator, sides.source, options={"target_session_attrs": "read-only"})
    assert readable["code"] is None
