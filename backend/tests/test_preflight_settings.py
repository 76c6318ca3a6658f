"""Preflight of what servers, databases and users are set to: "Ready" means that a stream would run."""

from collections.abc import Generator

import httpx
import pytest

from tests.conftest import Sides, made_sides
from tests.support.servers import Cluster, start_cluster
from tests.test_preflight import checks_of, failed
from thalweg.inspection.checks import Checklist
from thalweg.inspection.preflight_source import check_idle_slots
from thalweg.inspection.schemas import CheckSide

pytestmark = pytest.mark.usefixtures("engine")
READ_ONLY = "default_transaction_read_only"


@pytest.fixture(scope="module")
def beside() -> Generator[Cluster, None, None]:
    """Another server than the store's, which some of these settings would make read-only."""
    started = start_cluster()
    yield started
    started.stop()


@pytest.fixture
def sides(beside: Cluster) -> Generator[Sides, None, None]:
    with made_sides(beside) as made:
        yield made


@pytest.mark.parametrize("side", ["source", "destination"])
@pytest.mark.parametrize(
    ("of", "named"),
    [
        ("ALTER ROLE {user}", "of the user"), ("ALTER DATABASE {dbname}", "of the database"),
        ("ALTER ROLE {user} IN DATABASE {dbname}", "in this database"), ("ALTER SYSTEM", "of the server"),
        ("ALTER ROLE ALL", "of all users"),
    ],
)  # fmt: skip
async def test_sessions_that_may_not_write_are_told_with_the_cure(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides, side: str, of: str, named: str
) -> None:
    own = sides.source if side == "source" else sides.destination
    on = of.format(**own)
    sides.cluster.execute(f"{on} SET {READ_ONLY} = on", "SELECT pg_reload_conf()")
    try:
        checks = await checks_of(operator, registered)
        assert f"{side}:writing" in failed(checks)
        check = checks[f"{side}:writing"]
        assert f"{READ_ONLY} " in check["detail"] and named in check["detail"]
        sides.cluster.execute(*check["sql"].splitlines(), dbname=own["dbname"])
        assert failed(await checks_of(operator, registered)) == set()
    finally:
        ends = [f"SET {READ_ONLY} = off", f"{on} RESET {READ_ONLY}", "SELECT pg_reload_conf()"]
        sides.cluster.execute(*ends)


async def test_the_innermost_setting_counts(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    user, dbname = sides.source["user"], sides.source["dbname"]
    sides.cluster.execute(f"ALTER DATABASE {dbname} SET {READ_ONLY} = on", f"ALTER ROLE {user} SET {READ_ONLY} = off")
    assert (await checks_of(operator, registered))["source:writing"]["status"] == "ok"


@pytest.mark.parametrize(
    ("timeout", "status", "told"),
    [("2h", "warning", "idle_replication_slot_timeout is 2h"), ("0", "ok", "no matter how long")],
)
def test_a_server_that_gives_unread_slots_up_is_told_of(timeout: str, status: str, told: str) -> None:
    """As PostgreSQL 18 can."""
    checklist = Checklist(CheckSide.SOURCE)
    check_idle_slots(checklist, {"idle_timeout": timeout})
    [check] = checklist.checks
    assert (check.id, check.status) == ("idle_slots", status)
    assert told in check.detail
    assert (check.sql == "ALTER SYSTEM SET idle_replication_slot_timeout = 0") is (status == "warning")


async def test_a_server_without_such_a_setting_keeps_slots(
    operator: httpx.AsyncClient, registered: dict[str, str]
) -> None:
    assert (await checks_of(operator, registered))["source:idle_slots"]["status"] == "ok"
