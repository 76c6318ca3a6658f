"""A collector that is killed while it creates a cure's index: another one goes on from what is there."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest

from tests.conftest import Sides
from tests.features.test_advisor import ADVISOR, missing_index, over
from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import wait_for
from thalweg.composition import close_resources, make_resources
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import stop_task
from thalweg.workers.collector import Collector

BUILDING = "SELECT pid FROM pg_stat_progress_create_index WHERE datname = current_database()"
INDEX = "SELECT indexrelid, indisvalid FROM pg_index WHERE indrelid = 'orders'::regclass"


@pytest.fixture
def doomed(settings: Settings, engine: EngineDouble) -> Generator[subprocess.Popen[bytes], None, None]:
    """A collector as a process of its own."""
    assert settings.secret_key is not None
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")},
        "THALWEG_STORE_URL": settings.store_url, "THALWEG_REDIS_URL": settings.redis_url, "THALWEG_LOG_LEVEL": "error",
        "THALWEG_SECRET_KEY": settings.secret_key.get_secret_value(), "THALWEG_POLL_INTERVAL": "0.05",
    }  # fmt: skip
    program = "from thalweg.workers.collector import run; run()"
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    yield process
    process.kill()
    process.wait()


@asynccontextmanager
async def successor(settings: Settings) -> AsyncGenerator[None, None]:
    resources = make_resources(settings, "thalweg collector")
    task = asyncio.create_task(Collector(resources).run())
    try:
        yield
    finally:
        await stop_task(task)
        await close_resources(resources)


async def test_index_of_a_killed_collector_is_built_anew_by_the_next(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    settings: Settings,
    doomed: subprocess.Popen[bytes],
    sides: Sides,
) -> None:
    made = await created(operator, registered)
    await wait_for(operator, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    owner = f"ALTER TABLE orders OWNER TO {sides.destination['user']}"
    finding = await missing_index(operator, made["id"], sides, owner)
    body = {"run_id": finding["run_id"], "finding_id": finding["id"], "measure_after_seconds": 2}
    look = psycopg.connect(sides.cluster.url(sides.destination["dbname"]).replace("+psycopg", ""), autocommit=True)

    async def rows(query: str) -> list[tuple[Any, ...]]:
        return await asyncio.to_thread(lambda: look.execute(query.encode()).fetchall())

    with look, psycopg.connect(look.info.dsn) as writer:
        writer.execute("UPDATE orders SET amount = 1 WHERE id = 1")  # the index waits for it
        cure = (await operator.post(f"{ADVISOR}/cures", json=body)).json()
        operation = f"/api/v1/operations/{cure['operation_id']}"
        ((builder,),) = await eventually(lambda: rows(BUILDING))
        await wait_for(operator, operation, state="running")
        ((oid, valid),) = await eventually(lambda: rows(INDEX))  # it is begun before others see it
        doomed.kill()
        doomed.wait()
        assert valid is False
        # The session that built it goes with its server's connection, as after a broken network.
        await rows(f"SELECT pg_terminate_backend({builder}, 10000)")
        assert (await rows(BUILDING), await rows(INDEX)) == ([], [(oid, False)])
        shown = (await operator.get(f"{ADVISOR}/cures/{cure['id']}")).json()
        assert (shown["state"], (await operator.get(operation)).json()["state"]) == ("applying", "running")

        async with successor(settings):

            async def dropping() -> bool:
                query = (
                    "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DROP INDEX CONCURRENTLY%' AND state = 'active'"
                )
                return bool(await rows(query + " AND datname = current_database() AND pid <> pg_backend_pid()"))

            await eventually(dropping)
            writer.commit()
            done = await over(operator, cure["id"])
            assert done["state"] in ("helped", "no_difference", "worse"), done
            ((anew, valid),) = await rows(INDEX)
            assert (valid, anew != oid) == (True, True)
            assert (await operator.get(operation)).json()["state"] == "succeeded"
