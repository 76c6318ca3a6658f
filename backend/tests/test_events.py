"""Server-sent events over a real connection: login, samples, resumption, outage of Redis."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.conftest import PASSWORD, Users
from tests.support.servers import RedisServer
from tests.support.serving import PATIENCE, serve, without_lifespan
from thalweg.api import create_app
from thalweg.features.events import service
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings
from thalweg.live.bus import Bus
from thalweg.live.hub import REPLAY_PART, REPLAYED_MAX, missed_events
from thalweg.live.schemas import EngineEvent


@pytest.fixture
async def address(app: FastAPI) -> AsyncGenerator[str, None]:
    """The application on a port: an in-process transport would wait for the stream's end."""

    async with serve(without_lifespan(app)) as url:
        yield url


class Tab:
    """A browser tab: reads events as they come."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> tuple[str, str | None, dict[str, Any]]:
        """(name, id, data)"""
        name, identifier, data = "", None, ""
        async with asyncio.timeout(10):
            async for line in self._lines:
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "id":
                    identifier = value
                elif field == "data":
                    data = value
                elif not line and name:
                    return name, identifier, json.loads(data)
        raise AssertionError("the stream ended")

    async def end(self) -> None:
        """Reads on, whatever comes, until the server ends the stream."""
        async with asyncio.timeout(5):
            async for _ in self._lines:
                pass


@asynccontextmanager
async def tab(
    address: str, users: Users, last_event_id: str | None = None, login: dict[str, str] | None = None
) -> AsyncGenerator[Tab, None]:
    headers = login or {"Authorization": f"Bearer {users.tokens[Role.VIEWER]}"}
    if last_event_id is not None:
        headers["Last-Event-ID"] = last_event_id
    async with (
        httpx.AsyncClient(base_url=address, headers=headers, timeout=PATIENCE) as client,
        client.stream("GET", "/api/v1/events") as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        opened = Tab(response)
        assert (await opened.next())[0] == "hello"
        yield opened


def event(engine_id: str) -> tuple[str, EngineEvent]:
    return "engine", EngineEvent(engine_id=engine_id, state="ONLINE", at=now())


async def test_needs_login(address: str, users: Users) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        answer = await client.get("/api/v1/events")
    assert (answer.status_code, answer.json()["code"]) == (401, "authentication_required")


async def test_every_tab_gets_every_event(address: str, users: Users, resources: Resources) -> None:
    async with tab(address, users) as first, tab(address, users) as second:
        await Bus(resources.redis).publish([event("first"), event("second")])
        for opened in (first, second):
            assert [(await opened.next())[2]["engine_id"] for _ in range(2)] == ["first", "second"]


async def test_resumes_after_the_last_event_id(address: str, users: Users, resources: Resources) -> None:
    bus = Bus(resources.redis)
    async with tab(address, users) as opened:
        await bus.publish([event("seen")])
        identifier = (await opened.next())[1]
    await bus.publish([event("missed")])
    async with tab(address, users, identifier) as opened:
        await bus.publish([event("new")])
        assert [(await opened.next())[2]["engine_id"] for _ in range(2)] == ["missed", "new"]


async def test_reset_when_events_may_be_gone(address: str, users: Users, resources: Resources) -> None:
    await Bus(resources.redis).publish([event("kept")])
    for identifier in ("1-1", "nonsense"):
        async with tab(address, users, identifier) as opened:
            assert (await opened.next())[0] == "reset"


async def test_outage_of_redis_ends_nothing(
    address: str, users: Users, resources: Resources, redis_server: RedisServer
) -> None:
    async with tab(address, users) as opened:
        redis_server.stop()
        await asyncio.sleep(0.3)
        redis_server.start()
        assert (await opened.next())[0] == "reset"
        await Bus(resources.redis).publish([event("after")])
        assert (await opened.next())[2]["engine_id"] == "after"


async def test_a_tab_goes_on_at_another_worker(
    address: str, users: Users, resources: Resources, settings: Settings
) -> None:
    """Workers keep nothing of a tab: login, missed events and the logout hold at each of them."""
    async with serve(create_app(settings)) as elsewhere:
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            login = await log_in(client, "viewer")
        async with tab(address, users, login=dict(login)) as opened:
            await Bus(resources.redis).publish([event("seen")])
            identifier = (await opened.next())[1]
        await Bus(resources.redis).publish([event("missed")])
        async with tab(elsewhere, users, identifier, login=dict(login)) as opened:
            await Bus(resources.redis).publish([event("new")])
            assert [(await opened.next())[2]["engine_id"] for _ in range(2)] == ["missed", "new"]
        async with httpx.AsyncClient(base_url=elsewhere, headers=login, timeout=PATIENCE) as client:
            assert (await client.get("/api/v1/overview")).status_code == 200
            assert (await client.delete("/api/v1/session")).status_code == 204
        async with httpx.AsyncClient(base_url=address, headers=login, timeout=PATIENCE) as client:
            assert (await client.get("/api/v1/overview")).status_code == 401


@pytest.fixture
def quick_heartbeat(app: FastAPI, settings: Settings) -> None:
    settings.events_heartbeat = 0.3


async def log_in(client: httpx.AsyncClient, name: str) -> dict[str, str]:
    answer = await client.post("/api/v1/session", json={"name": name, "password": PASSWORD})
    assert answer.status_code == 201, answer.text
    return {"Cookie": f"thalweg_session={answer.cookies['thalweg_session']}",
            "X-CSRF-Token": answer.json()["csrf_token"]}  # fmt: skip


async def test_ends_soon_after_the_logout(address: str, users: Users, quick_heartbeat: None) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        login = await log_in(client, "viewer")
        other = await log_in(client, "operator")
        client.cookies.clear()
        async with tab(address, users, login=login) as left, tab(address, users, login=other) as stays:
            assert (await client.delete("/api/v1/session", headers=login)).status_code == 204
            await left.end()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await stays.end()


async def test_ends_soon_after_the_token_is_revoked_also_on_a_busy_bus(
    address: str, users: Users, admin: httpx.AsyncClient, resources: Resources, quick_heartbeat: None
) -> None:
    async def chatter() -> None:
        while True:
            await Bus(resources.redis).publish([event("busy")])
            await asyncio.sleep(0.01)

    task = asyncio.create_task(chatter())
    try:
        async with tab(address, users) as opened:
            every = (await admin.get("/api/v1/tokens")).json()["items"]
            tokens = [token for token in every if token["user_id"] == users.ids[Role.VIEWER]]
            (token,) = [token for token in tokens if token["name"] == "viewer token"]
            assert (await admin.delete(f"/api/v1/tokens/{token['id']}")).status_code == 204
            await opened.end()
    finally:
        task.cancel()


async def test_ends_soon_after_the_user_is_disabled(
    address: str, users: Users, admin: httpx.AsyncClient, quick_heartbeat: None
) -> None:
    async with tab(address, users) as opened:
        path = f"/api/v1/users/{users.ids[Role.VIEWER]}"
        answer = await admin.patch(path, json={"enabled": False}, headers={"If-Match": "*"})
        assert answer.status_code == 200, answer.text
        await opened.end()


async def test_a_user_has_so_many_streams(
    address: str, users: Users, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "STREAMS_EACH_MAX", 2)
    viewer, operator = ({"Authorization": f"Bearer {users.tokens[role]}"} for role in (Role.VIEWER, Role.OPERATOR))
    async with tab(address, users), httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        async with tab(address, users):
            refused = await client.get("/api/v1/events", headers=viewer, timeout=5)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
            assert "Close some" in refused.json()["cure"]
            async with tab(address, users, login=operator):
                pass
        for _ in range(200):
            if app.state.hub.count_of(users.ids[Role.VIEWER]) == 1:
                break
            await asyncio.sleep(0.05)
        async with tab(address, users):
            pass


async def test_what_is_sent_again_is_bounded_and_in_parts(address: str, users: Users, resources: Resources) -> None:
    bus = Bus(resources.redis)
    await bus.publish([event("first")])
    first = await bus.last_event_id()
    await bus.publish([event(str(number)) for number in range(REPLAYED_MAX)])
    parts = [part async for part in missed_events(resources.redis, first)]
    assert [len(part) for part in parts] == [REPLAY_PART] * (REPLAYED_MAX // REPLAY_PART)
    await bus.publish([event("one more")])
    async with tab(address, users, first) as opened:
        names = [(await opened.next())[0] for _ in range(REPLAYED_MAX + 1)]
    assert names == ["engine"] * REPLAYED_MAX + ["reset"]
    async with tab(address, users, "0-0") as opened:
        assert (await opened.next())[0] == "reset"
        await bus.publish([event("new")])
        assert (await opened.next())[2]["engine_id"] == "new"
