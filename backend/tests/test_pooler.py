"""A real PgBouncer between: it is found, and nothing of ours stays behind for its other users."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import httpx
import psycopg
import pytest
from pooler import pgbouncer
from psycopg import AsyncConnection
from psycopg.rows import DictRow

from tests.conftest import Sides
from tests.features.test_databases import PATH, try_settings
from tests.support.servers import POSTGRES_USER, free_port
from thalweg.inspection.session import is_own, session_options

Pooler = Callable[..., int]


@pytest.fixture
def pooler(sides: Sides) -> Generator[Pooler, None, None]:
    """Starts one in transaction mode with a pool of one session; gives its port."""
    source = sides.source
    with ExitStack() as running:

        def start(database: str = "", **settings: str) -> int:
            port = free_port()
            running.enter_context(
                pgbouncer(
                    port,
                    f"host=127.0.0.1 port={source['port']}",
                    {str(source["user"]): str(source["password"])},
                    POSTGRES_USER,
                    database,
                    **settings,
                )
            )
            return port

        yield start


def connect(sides: Sides, port: int) -> psycopg.Connection[tuple[str, str]]:
    source = sides.source
    return psycopg.connect(host="127.0.0.1", port=port, dbname=source["dbname"], user=source["user"], autocommit=True)


def settings_of_pool(sides: Sides, port: int) -> tuple[str, str] | None:
    with connect(sides, port) as connection:
        return connection.execute(
            "SELECT current_setting('default_transaction_read_only'), current_setting('statement_timeout')"
        ).fetchone()


@pytest.mark.parametrize(
    "lines", [{}, {"ignore_startup_parameters": "options,extra_float_digits"}], ids=["refuses", "drops"]
)
async def test_pooler_is_found_and_left_clean(
    operator: httpx.AsyncClient, sides: Sides, pooler: Pooler, lines: dict[str, str]
) -> None:
    port = pooler(**lines)
    before = settings_of_pool(sides, port)
    result = await try_settings(operator, sides.source, port=port)
    assert result["code"] == "connection_pooler"
    assert "server itself" in result["cure"]
    made = (await operator.post(PATH, json={**sides.source, "port": port})).json()
    for role in ("source", "destination"):
        preflight = (await operator.get(f"{PATH}/{made['id']}/preflight", params={"role": role})).json()
        assert not preflight["ready"]
        (check,) = preflight["checks"]
        assert (check["id"], check["status"]) == ("connection", "failed")
        assert "pooler" in check["cure"]
    assert settings_of_pool(sides, port) == before == ("off", "0")


async def test_pooler_that_hands_out_sessions_of_others_is_found(
    operator: httpx.AsyncClient, sides: Sides, pooler: Pooler
) -> None:
    """Its sessions have all our settings, as another one of ours has begun them."""
    begun = session_options("1").removeprefix("-c ").replace("\\ ", " ").split(" -c ")
    settings = "; ".join(f"SET {name} = ''{value}''" for name, value in (setting.split("=", 1) for setting in begun))
    port = pooler(f"connect_query='{settings}'", ignore_startup_parameters="options,extra_float_digits")
    with connect(sides, port) as other:
        assert other.execute("SELECT current_setting('thalweg.session')").fetchone() == ("1",)
    assert (await try_settings(operator, sides.source, port=port))["code"] == "connection_pooler"


class Looks:
    """A session whose statements go to server processes as told."""

    def __init__(self, pids: list[int], told: int, marker: str = "own") -> None:
        self.pids, self.marker, self.asked = pids, marker, 0
        self.info = SimpleNamespace(backend_pid=told, server_version=150000)

    async def execute(self, _: str) -> "Looks":
        self.asked += 1
        return self

    async def fetchone(self) -> dict[str, Any]:
        return {"marker": self.marker, "pid": self.pids[self.asked - 1]}


@pytest.mark.parametrize(
    ("session", "own", "asked"),
    [
        (Looks([7], told=7), True, 1),
        (Looks([7, 8], told=1), False, 2),  # two transactions, two processes
        (Looks([7, 7, 7], told=1), True, 3),  # somebody between who keeps the session to us
        (Looks([7], told=7, marker="of another"), False, 1),
    ],
)
async def test_a_session_that_stays_at_one_process_is_ours(session: Looks, own: bool, asked: int) -> None:
    assert await is_own(cast("AsyncConnection[DictRow]", session), "own") is own
    assert session.asked == asked


async def test_settings_of_the_role_do_not_reach_our_sessions(operator: httpx.AsyncClient, sides: Sides) -> None:
    user = sides.source["user"]
    sides.cluster.execute(
        f"ALTER ROLE {user} SET idle_session_timeout = 1", f"ALTER ROLE {user} SET statement_timeout = 1",
        f"ALTER ROLE {user} SET lock_timeout = 1", f"ALTER ROLE {user} SET default_transaction_read_only = on",
    )  # fmt: skip
    assert (await try_settings(operator, sides.source))["code"] is None


def test_looks_at_the_catalogue_are_not_compiled(sides: Sides) -> None:
    """That takes seconds for hundreds of tables, and pays never."""
    source = sides.source
    target = {"host": "127.0.0.1", **{name: source[name] for name in ("port", "user", "password", "dbname")}}
    with psycopg.connect(**target, options=session_options("own")) as connection:
        assert connection.execute("SELECT current_setting('jit')").fetchone() == ("off",)
