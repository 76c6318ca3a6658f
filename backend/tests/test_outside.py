"""No request holds a connection of the store while it waits for another one, or for anything outside."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from tests.conftest import PASSWORD, Sides, Users, make_client
from tests.support.serving import eventually
from thalweg.alerting.notice import notice_of_test
from thalweg.alerting.senders.settings import WebhookSettings
from thalweg.alerting.senders.webhook import post_webhook
from thalweg.features.identity import login
from thalweg.inspection.connection import connected
from thalweg.inspection.matching import select_tables
from thalweg.inspection.target import Target
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources, release
from thalweg.kernel.networks import Networks
from thalweg.kernel.outside import HeldConnection, outside
from thalweg.kernel.passwords import hash_password
from thalweg.kernel.principal import Role
from thalweg.kernel.rules import TablePattern, TableRules
from thalweg.live.bus import Bus
from thalweg.workers.sources import certificate_end

WRONG = {"name": "admin", "password": "wrong wrong"}


async def test_outside_work_in_a_transaction_fails(resources: Resources) -> None:
    async with resources.sessions() as session:
        await session.execute(text("SELECT 1"))
        with pytest.raises(HeldConnection, match="an engine was waited for"):
            outside("an engine")
        await release(session)
        outside("an engine")
        await session.execute(text("SELECT 1"))
        async with resources.sessions() as second:
            with pytest.raises(HeldConnection, match="a second connection"):
                await second.execute(text("SELECT 1"))
    outside("an engine")


async def test_whatever_is_waited_for_counts_as_outside(resources: Resources) -> None:
    all_tables = TableRules(include=[TablePattern(schema_name="*")])
    notice = notice_of_test("delivery", now(), "https://console.example")
    waits: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        ("Redis", lambda: Bus(resources.redis).last_event_id()),
        ("a password hash", lambda: hash_password("a password")),
        ("an engine", lambda: certificate_end("https://127.0.0.1:1", 1)),
        ("a name", lambda: Networks().addresses_of("localhost", 5432)),
        ("a webhook", lambda: post_webhook(WebhookSettings(url="http://127.0.0.1:1"), "", notice, 1, Networks())),
        ("a thread", lambda: select_tables(all_tables, [])),
    ]
    async with resources.sessions() as session:
        await session.execute(text("SELECT 1"))
        for what, wait in waits:
            with pytest.raises(HeldConnection, match=f"{what} was waited for"):
                await wait()


async def test_statements_in_an_open_session_count_as_outside(resources: Resources, sides: Sides) -> None:
    database = {**sides.source, "host": "127.0.0.1"}
    target = Target(*(database[name] for name in ("host", "port", "dbname", "user", "password")), "prefer")
    async with connected(target, 5) as connection, resources.sessions() as session:
        await session.execute(text("SELECT 1"))
        with pytest.raises(HeldConnection, match="a database was waited for"):
            await connection.execute("SELECT 1")
        await release(session)
        await connection.execute("SELECT 1")


async def test_many_wrong_logins_at_once_stop_nobody(app: FastAPI, users: Users, viewer: httpx.AsyncClient) -> None:
    async with make_client(app) as client:
        attempts = [client.post("/api/v1/session", json=WRONG) for _ in range(16)]
        strangers = [client.post("/api/v1/session", json={**WRONG, "name": f"nobody {n}"}) for n in range(8)]
        others = [viewer.get("/api/v1/session") for _ in range(8)]
        answers = await asyncio.gather(*attempts, *strangers, *others)
    statuses = [answer.status_code for answer in answers]
    assert set(statuses[:16]) == {401, 429}
    assert statuses[:16].count(401) >= 5  # more where a second goes by meanwhile
    assert statuses[16:24] == [401] * 8
    assert statuses[24:] == [200] * 8


async def test_an_attempt_that_never_ends_counts(
    app: FastAPI, users: Users, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = asyncio.Event()

    async def hang(password: str, stored: str | None) -> bool:
        began.set()
        await asyncio.Event().wait()
        return False

    monkeypatch.setattr(login, "verify_password", hang)
    async with make_client(app) as client:
        attempt = asyncio.create_task(client.post("/api/v1/session", json=WRONG))
        await began.wait()
        attempt.cancel()
        await asyncio.wait({attempt})
    async with resources.sessions() as session:
        failures = await session.execute(text("SELECT key, failures FROM login_throttles ORDER BY key"))
        assert [row.failures for row in failures] == [1, 1]


async def test_the_right_password_is_no_failure_of_its_address(
    app: FastAPI, users: Users, resources: Resources
) -> None:
    async with make_client(app) as client:
        await client.post("/api/v1/session", json=WRONG)
        answer = await client.post("/api/v1/session", json={"name": "admin", "password": PASSWORD})
        assert answer.status_code == 201
    async with resources.sessions() as session:
        rows = await session.execute(text("SELECT split_part(key, ':', 1) AS kind, failures FROM login_throttles"))
        assert [tuple(row) for row in rows] == [("address", 1)]


async def test_a_slow_database_holds_neither_connection_nor_token(
    operator: httpx.AsyncClient, users: Users, resources: Resources
) -> None:
    connected, over = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    body = {
        "host": "127.0.0.1",
        "port": server.sockets[0].getsockname()[1],
        "dbname": "d",
        "user": "u",
        "password": "p",
    }
    test = asyncio.create_task(operator.post("/api/v1/databases:test", json=body))
    await connected.wait()

    async def nothing_held() -> bool:
        return resources.engine.pool.checkedout() == 0  # type: ignore[attr-defined]

    await eventually(nothing_held)
    async with resources.sessions() as session:
        locked = "SELECT last_used_at FROM tokens WHERE role = 'operator' FOR UPDATE NOWAIT"
        assert (await session.execute(text(locked))).scalar_one() is not None
    over.set()
    assert (await test).json()["code"] == "database_unreachable"
    server.close()


async def test_a_wrong_current_password_is_throttled_and_audited(
    viewer: httpx.AsyncClient, admin: httpx.AsyncClient, users: Users, resources: Resources
) -> None:
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}:change-password"
    body = {"current_password": "a guess", "new_password": "weathered copper kettle"}
    answers = await asyncio.gather(*(viewer.post(path, json=body) for _ in range(7)))
    assert {answer.status_code for answer in answers} == {403, 429}
    async with resources.sessions() as session:
        await session.execute(text("UPDATE login_throttles SET blocked_until = now() + interval '1 hour'"))
        await session.commit()
    right = await viewer.post(path, json={**body, "current_password": PASSWORD})
    assert (right.status_code, right.json()["code"]) == (429, "too_many_attempts")
    actions = [entry["action"] for entry in (await admin.get("/api/v1/audit")).json()["items"]]
    assert set(actions) == {"users_change_password_refused"}


async def test_a_failed_login_is_audited(anonymous: httpx.AsyncClient, admin: httpx.AsyncClient, users: Users) -> None:
    await anonymous.post("/api/v1/session", json=WRONG)
    await anonymous.post("/api/v1/session", json={"name": "nobody", "password": "wrong wrong"})
    unknown, known = (await admin.get("/api/v1/audit")).json()["items"]
    assert (known["action"], known["via"], known["actor_id"]) == ("session_refused", "anonymous", None)
    assert (known["target_id"], known["target_name"]) == (users.ids[Role.ADMIN], "admin")
    assert (unknown["target_id"], unknown["target_name"]) == ("", "nobody")
    assert known["address"] is not None
