"""Fixtures: a real store made by migrations for each test, a real Redis, the application, its users."""

import itertools
import os
import shutil
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import guard
import httpx
import pytest
from cryptography.fernet import Fernet
from fastapi import FastAPI

from tests.support.command_server import command_server
from tests.support.engine_double import TOKEN, EngineDouble
from tests.support.servers import Cluster, RedisServer, free_port, start_cluster
from tests.support.serving import serve
from thalweg.api import create_app
from thalweg.cli import administration
from thalweg.db.models import UserRow
from thalweg.features.identity.schemas import TokenCreate
from thalweg.features.identity.tokens import make_token
from thalweg.kernel import outside
from thalweg.kernel.context import Resources
from thalweg.kernel.passwords import hash_password
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings

outside.strict = True
TEMPLATE = "store_template"
PASSWORD = "correct horse battery"
_numbers = itertools.count(1)

if "PYTEST_XDIST_WORKER" not in os.environ:
    guard.guard()


@pytest.fixture(scope="session")
def cluster() -> Generator[Cluster, None, None]:
    started = start_cluster()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def store_template(cluster: Cluster) -> str:
    cluster.execute(f"CREATE DATABASE {TEMPLATE}")
    administration.migrate(Settings(store_url=cluster.url(TEMPLATE)))
    return TEMPLATE


@pytest.fixture(scope="session")
def redis_server() -> Generator[RedisServer, None, None]:
    server = RedisServer(free_port())
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path, None, None]:
    """The folder of a `thalweg` that starts fast."""
    with command_server(tmp_path_factory.mktemp("commands")) as programs:
        yield programs


@pytest.fixture
def settings(cluster: Cluster, store_template: str, redis_server: RedisServer) -> Generator[Settings, None, None]:
    number = next(_numbers)
    name = f"store_{number}"
    cluster.execute(f"CREATE DATABASE {name} TEMPLATE {store_template} STRATEGY file_copy")
    yield Settings(
        store_url=cluster.url(name), redis_url=redis_server.url.replace("/0", f"/{number % 16}"),
        secret_key=Fernet.generate_key().decode(), store_pool_size=5,
        poll_interval=0.05, engine_timeout=2, database_connect_timeout=20, log_level="error",
    )  # fmt: skip
    cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """Built once: it takes longer than most tests. State that a test changes is in the application's lifespan."""
    built = tmp_path_factory.mktemp("built")
    return create_app(Settings(console_directory=built / "console", help_directory=built / "help"))


@pytest.fixture
async def app(application: FastAPI, settings: Settings) -> AsyncGenerator[FastAPI, None]:
    settings.console_directory = application.state.settings.console_directory
    settings.help_directory = application.state.settings.help_directory
    for built in (settings.console_directory, settings.help_directory):
        shutil.rmtree(built, ignore_errors=True)  # an earlier test's
    application.state.settings = settings
    async with application.router.lifespan_context(application):
        await application.state.resources.redis.flushdb()
        yield application


@pytest.fixture
def resources(app: FastAPI) -> Resources:
    return app.state.resources


@dataclass
class Users:
    """One user of each role; `client(role)` sends its API token."""

    app: FastAPI
    tokens: dict[Role, str]
    ids: dict[Role, str]

    def client(self, role: Role) -> httpx.AsyncClient:
        return make_client(self.app, {"Authorization": f"Bearer {self.tokens[role]}"})


def make_client(app: FastAPI, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://thalweg", headers=headers
    )


_hash: list[str] = []


@pytest.fixture
async def users(app: FastAPI, resources: Resources) -> Users:
    """Their names are those of their roles, the password is PASSWORD."""
    if not _hash:
        _hash.append(await hash_password(PASSWORD))
    tokens, ids = {}, {}
    async with resources.sessions() as session:
        for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):
            user = UserRow(name=role.value, role=role, enabled=True, password_hash=_hash[0])
            session.add(user)
            await session.flush()
            row, tokens[role] = make_token(user, TokenCreate(name=f"{role} token", role=role))
            session.add(row)
            ids[role] = user.id
        await session.commit()
    return Users(app, tokens, ids)


@pytest.fixture
async def anonymous(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with make_client(app) as client:
        yield client


@pytest.fixture
async def admin(users: Users) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with users.client(Role.ADMIN) as client:
        yield client


@pytest.fixture
async def operator(users: Users) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with users.client(Role.OPERATOR) as client:
        yield client


@pytest.fixture
async def viewer(users: Users) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with users.client(Role.VIEWER) as client:
        yield client


@dataclass
class Sides:
    """A source and a destination as a careful administrator sets them up: users without superuser."""

    cluster: Cluster
    source: dict[str, Any]
    destination: dict[str, Any]

    def on_source(self, *statements: str) -> None:
        self.cluster.execute(*statements, dbname=self.source["dbname"])

    def on_destination(self, *statements: str) -> None:
        self.cluster.execute(*statements, dbname=self.destination["dbname"])


@pytest.fixture
def sides(cluster: Cluster) -> Generator[Sides, None, None]:
    with made_sides(cluster) as made:
        yield made


@contextmanager
def made_sides(cluster: Cluster) -> Generator[Sides, None, None]:
    number = next(_numbers)
    names = {"source": f"shop_{number}", "destination": f"warehouse_{number}"}
    reader, writer = f"reader_{number}", f"writer_{number}"
    cluster.execute(
        f"CREATE ROLE {reader} LOGIN REPLICATION PASSWORD 'secret of reader'",
        f"CREATE ROLE {writer} LOGIN PASSWORD 'secret of writer'",
        f"CREATE DATABASE {names['source']} OWNER {reader} STRATEGY file_copy",
        f"CREATE DATABASE {names['destination']} OWNER {writer} STRATEGY file_copy",
        f"GRANT SET ON PARAMETER session_replication_role TO {writer}",
    )
    common = {"host": "127.0.0.1", "port": cluster.port, "sslmode": "prefer"}
    made = Sides(
        cluster,
        {**common, "name": "shop", "dbname": names["source"], "user": reader, "password": "secret of reader"},
        {**common, "name": "warehouse", "dbname": names["destination"], "user": writer, "password": "secret of writer"},
    )
    made.on_source(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL, amount numeric(12,2))",
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text)",
        "INSERT INTO orders SELECT n, 'item', n FROM generate_series(1, 100) n",
        f"ALTER TABLE orders OWNER TO {reader}",
        f"ALTER TABLE customers OWNER TO {reader}",
        "ANALYZE",
    )
    yield made
    for name in names.values():
        cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")
    cluster.execute(f"REVOKE SET ON PARAMETER session_replication_role FROM {writer}")
    cluster.execute(f"DROP ROLE {reader}", f"DROP ROLE {writer}")


@pytest.fixture
async def registered(admin: httpx.AsyncClient, sides: Sides) -> dict[str, str]:
    """Ids of the two registered databases, by side."""
    ids = {}
    for side, body in (("source", sides.source), ("destination", sides.destination)):
        answer = await admin.post("/api/v1/databases", json=body)
        assert answer.status_code == 201, answer.text
        ids[side] = answer.json()["id"]
    return ids


@pytest.fixture
async def double() -> AsyncGenerator[tuple[EngineDouble, str], None]:
    engine = EngineDouble()
    async with serve(engine.app()) as url:
        yield engine, url


@pytest.fixture
async def engine(admin: httpx.AsyncClient, double: tuple[EngineDouble, str]) -> EngineDouble:
    """An enrolled engine double."""
    token = (await admin.post("/api/v1/engines/enrolments", json={})).json()["token"]
    body = {"token": token, "name": "local", "url": double[1], "control_token": TOKEN}
    answer = await admin.post("/api/v1/engines/enrol", json=body)
    assert answer.status_code == 201, answer.text
    return double[0]
