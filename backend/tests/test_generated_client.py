"""A client generated from the OpenAPI document has every operation, and drives the product from login to delete."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi import FastAPI

from tests.conftest import PASSWORD, Sides, Users
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually, serve, without_lifespan
from tests.test_collector import collector  # noqa: F401
from tests.test_real_engine import orders, same_rows, thalwegd  # noqa: F401

DOCUMENT = Path(__file__).resolve().parents[1] / "openapi.json"
GENERATOR = Path(sys.executable).with_name("openapi-python-client")
SECONDS_MAX = 120


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the package thalweg_client. Any warning of the generator fails."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "config.yaml").write_text("post_hooks: []\n")
    done = subprocess.run(
        [GENERATOR, "generate", "--path", DOCUMENT, "--output-path", folder / "client", "--config",
         folder / "config.yaml", "--fail-on-warning"],
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "arning" not in told and "nable" not in told, told
    return folder / "client"


@pytest.fixture
def client_package(generated: Path) -> Generator[ModuleType, None, None]:
    sys.path.insert(0, str(generated))
    yield importlib.import_module("thalweg_client")
    sys.path.remove(str(generated))


def test_every_operation_is_generated(generated: Path) -> None:
    made = {file.stem for file in (generated / "thalweg_client" / "api").glob("*/*.py")} - {"__init__"}
    document = json.loads(DOCUMENT.read_text())
    assert made == {operation["operationId"] for item in document["paths"].values() for operation in item.values()}


class Api:
    """Calls generated operations; whatever is not the answer of success fails the test."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def __call__(self, operation: str, **arguments: Any) -> Any:
        tag, name = operation.split(".")
        module = importlib.import_module(f"thalweg_client.api.{tag}.{name}")
        answer = await module.asyncio_detailed(client=self.client, **arguments)
        assert answer.status_code < 300, (operation, answer.content)
        return answer.parsed

    async def until(self, check: Callable[[Any], bool], operation: str, **arguments: Any) -> Any:
        async def once() -> Any:
            answer = await self(operation, **arguments)
            return answer if check(answer) else None

        return await eventually(once, SECONDS_MAX)

    async def finished(self, accepted: Any) -> None:
        """The operation of an answer 202 has succeeded."""
        states = ("succeeded", "failed", "cancelled")
        operation = await self.until(
            lambda operation: str(operation.state) in states,
            "operations.operations_get",
            operation_id=accepted.operation_id,
        )
        assert operation.state == "succeeded", operation


async def logged_in(package: ModuleType, url: str) -> Api:
    """Logs in with a password, and makes the API token with which the rest is done."""
    models: Any = importlib.import_module("thalweg_client.models")
    create: Any = importlib.import_module("thalweg_client.api.identity.session_create")
    browser = package.Client(url)
    answer = await create.asyncio_detailed(client=browser, body=models.SessionCreate(name="admin", password=PASSWORD))
    assert answer.status_code == 201, answer.content
    cookie = {"thalweg_session": answer.headers["set-cookie"].split(";")[0].partition("=")[2]}
    browser = browser.with_cookies(cookie).with_headers({"X-CSRF-Token": answer.parsed.csrf_token})
    made = await Api(browser)(
        "identity.tokens_create", body=models.TokenCreate(name="generated client", role=models.Role.ADMIN)
    )
    return Api(package.AuthenticatedClient(url, token=made.secret))


async def test_a_generated_client_drives_the_main_journey(
    client_package: ModuleType,
    app: FastAPI,
    users: Users,
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    models: Any = importlib.import_module("thalweg_client.models")
    async with serve(without_lifespan(app)) as url:
        api = await logged_in(client_package, url)
        enrolment = await api("engines.enrolments_create", body=models.EnrolmentCreate())
        await api("engines.engines_enrol", body=models.EngineEnrol(
            token=enrolment.token, name="real", url=thalwegd.url, control_token=thalwegd.token
        ))  # fmt: skip
        source, destination = [
            await api("databases.databases_create", body=models.DatabaseCreate.from_dict(side))
            for side in (sides.source, sides.destination)
        ]
        assert (await api("databases.databases_test", database_id=source.id)).reachable

        only_orders = models.TableRules(include=[models.TablePattern(schema="public", table="orders")])
        wanted = {"source_id": source.id, "rules": only_orders,
                  "destinations": [models.DestinationCreate(database_id=destination.id)]}  # fmt: skip
        preflight = await api("streams.preflights_run", body=models.PreflightRequest(**wanted))
        assert preflight.ready, preflight
        accepted = await api("streams.streams_create", body=models.StreamCreate(name="generated", **wanted))
        await api.finished(accepted)
        this = {"stream_id": accepted.stream_id}

        sides.on_source("INSERT INTO orders VALUES (501, 'after the copy', 1)")
        await same_rows(sides)
        stream = await api.until(lambda shown: shown.lag.bytes_ is not None, "streams.streams_get", **this)
        assert stream.lag.bytes_ >= 0
        await api.until(lambda shown: shown.latency.p50_ms is not None, "streams.streams_get", **this)

        both = models.TableRules(include=[models.TablePattern(schema="public", table="*")])
        changed = await api(
            "streams.streams_update", **this, if_match=stream.etag, body=models.StreamUpdate(rules=both)
        )
        assert {table.table for table in changed.tables} == {"orders", "customers"}

        await api.finished(await api("streams.streams_stop", **this))
        sides.on_source("INSERT INTO orders VALUES (502, 'while it was stopped', 2)")
        await api.finished(await api("streams.streams_start", **this))
        await same_rows(sides)
        assert orders(sides, "destination")[-1][0] == 502

        run = await api("advisor.advisor_runs_create", body=models.RunCreate(**this, facts=False))
        report = await api("advisor.advisor_runs_get", run_id=run.id)
        assert [path.stream_id for path in report.paths] == [accepted.stream_id]

        await api.finished(await api("streams.streams_delete", **this))
        for database in (source, destination):
            await api("databases.databases_delete", database_id=database.id)
        assert (await api("streams.streams_list")).items == []
