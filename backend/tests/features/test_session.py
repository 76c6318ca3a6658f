"""Logging in with a password, and what the session's cookie may do."""

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from tests.conftest import PASSWORD, Users, make_client
from thalweg.kernel import passwords
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role

LOGIN = {"name": "admin", "password": PASSWORD}


@pytest.fixture
async def browser(app: FastAPI, users: Users) -> httpx.AsyncClient:
    client = make_client(app)
    answer = await client.post("/api/v1/session", json=LOGIN)
    assert answer.status_code == 201
    client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return client


async def test_cookie_is_http_only_and_same_site(anonymous: httpx.AsyncClient, users: Users) -> None:
    answer = await anonymous.post("/api/v1/session", json=LOGIN)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert answer.json()["user"] | {"created_at": 0, "updated_at": 0, "id": 0, "etag": 0} == {
        "id": 0, "name": "admin", "role": "admin", "enabled": True, "created_at": 0, "updated_at": 0, "etag": 0,
        "second_factor": False,
    }  # fmt: skip


async def test_session_says_who_and_gives_the_csrf_token(browser: httpx.AsyncClient) -> None:
    session = (await browser.get("/api/v1/session")).json()
    assert session["user"]["name"] == "admin"
    assert session["csrf_token"] == browser.headers["X-CSRF-Token"]


async def test_wrong_password_has_a_cure(anonymous: httpx.AsyncClient, users: Users) -> None:
    answer = await anonymous.post("/api/v1/session", json={"name": "admin", "password": "wrong"})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "urn:thalweg:problem:wrong_credentials"
    assert "set-password" in problem["cure"]


async def test_unknown_user_looks_like_a_wrong_password(anonymous: httpx.AsyncClient, users: Users) -> None:
    unknown = (await anonymous.post("/api/v1/session", json={"name": "nobody", "password": "wrong"})).json()
    known = (await anonymous.post("/api/v1/session", json={"name": "admin", "password": "wrong"})).json()
    assert unknown == known


async def test_unknown_user_takes_as_long_as_a_wrong_password(
    anonymous: httpx.AsyncClient, users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash is what takes the time."""
    verified: list[str] = []
    verify = passwords._hasher.verify
    monkeypatch.setattr(
        passwords._hasher, "verify", lambda password, stored: verified.append(stored) or verify(password, stored)
    )
    for name in ("nobody", "admin"):
        await anonymous.post("/api/v1/session", json={"name": name, "password": "wrong"})
    parameters = {stored.rpartition("$")[0].rpartition("$")[0] for stored in verified}
    assert (len(verified), len(parameters)) == (2, 1)


async def test_a_login_gives_a_session_of_its_own(app: FastAPI, users: Users) -> None:
    """Nobody can be made to log in under a cookie that somebody else has chosen or knows."""
    async with make_client(app) as first, make_client(app) as second:
        known = (await first.post("/api/v1/session", json={**LOGIN, "name": "viewer"})).cookies["thalweg_session"]
        for planted in (known, "chosen by somebody else"):
            second.cookies.clear()
            second.cookies.set("thalweg_session", planted)
            given = (await second.post("/api/v1/session", json=LOGIN)).cookies["thalweg_session"]
            assert given not in (known, planted)
        assert (await first.get("/api/v1/session")).json()["user"]["name"] == "viewer"


async def test_failures_slow_down_the_next_attempts(
    anonymous: httpx.AsyncClient, users: Users, resources: Resources
) -> None:
    for _ in range(5):
        answer = await anonymous.post("/api/v1/session", json={"name": "admin", "password": "wrong"})
        assert answer.status_code == 401
    async with resources.sessions() as session:
        waits = await session.execute(
            text(
                "UPDATE login_throttles SET blocked_until = blocked_until + interval '1 hour' "
                "WHERE blocked_until > last_failed_at RETURNING key"
            )
        )
        assert list(waits.scalars()) == ["name:admin from 127.0.0.1"]
        await session.commit()
    answer = await anonymous.post("/api/v1/session", json=LOGIN)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    other = await anonymous.post("/api/v1/session", json={"name": "viewer", "password": PASSWORD})
    assert other.status_code == 201


async def tried_names(resources: Resources) -> set[str]:
    async with resources.sessions() as session:
        return set(await session.scalars(text("SELECT key FROM login_throttles WHERE key LIKE 'name:%'")))


async def test_a_password_that_an_admin_sets_ends_the_wait(
    anonymous: httpx.AsyncClient, admin: httpx.AsyncClient, users: Users, resources: Resources
) -> None:
    """Of its user alone, whatever signs the name has that patterns have, too."""
    renamed = await admin.patch(
        f"/api/v1/users/{users.ids[Role.VIEWER]}", json={"name": "view_r"}, headers={"If-Match": "*"}
    )
    assert renamed.status_code == 200
    others = ("viewer", "view_r from afar")
    for name in ("view_r", *others):
        for _ in range(5):
            await anonymous.post("/api/v1/session", json={"name": name, "password": "wrong"})
    async with resources.sessions() as session:
        for column in ("last_failed_at", "blocked_until"):
            await session.execute(text(f"UPDATE login_throttles SET {column} = {column} + interval '1 hour'"))
        await session.execute(
            text("INSERT INTO login_throttles SELECT 'name:view_r from 10.0.0.0', failures, last_failed_at, "
                 "blocked_until FROM login_throttles WHERE key LIKE 'name:viewer from%'")
        )  # fmt: skip
        await session.execute(text("DELETE FROM login_throttles WHERE key LIKE 'address:%'"))
        await session.commit()
    right = {"name": "view_r", "password": "a kettle of copper"}
    assert (await anonymous.post("/api/v1/session", json=right)).status_code == 429
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}:change-password"
    assert (await admin.post(path, json={"new_password": right["password"]})).status_code == 204
    assert await tried_names(resources) == {f"name:{name} from 127.0.0.1" for name in others}
    assert (await anonymous.post("/api/v1/session", json=right)).status_code == 201


async def test_failures_are_forgotten_once_they_do_not_count_any_more(
    anonymous: httpx.AsyncClient, users: Users, resources: Resources
) -> None:
    """Anybody can make up names: the store does not keep them for ever."""
    for name in ("made up", "made up, too"):
        await anonymous.post("/api/v1/session", json={"name": name, "password": "wrong"})
    async with resources.sessions() as session:
        for column in ("last_failed_at", "blocked_until"):
            past = f"UPDATE login_throttles SET {column} = {column} - interval '31 minutes'"
            await session.execute(text(f"{past} WHERE key LIKE 'name:made up from%'"))
        await session.commit()
    await anonymous.post("/api/v1/session", json={"name": "nobody", "password": "wrong"})
    async with resources.sessions() as session:
        keys = set(await session.scalars(text("SELECT split_part(key, ' from', 1) FROM login_throttles")))
    assert keys == {"name:made up, too", "name:nobody", "address:127.0.0.1"}


async def test_change_without_csrf_token_is_refused(browser: httpx.AsyncClient) -> None:
    del browser.headers["X-CSRF-Token"]
    answer = await browser.post("/api/v1/tokens", json={"name": "t"})
    assert answer.status_code == 403
    assert answer.json()["code"] == "csrf_token_invalid"
    browser.headers["X-CSRF-Token"] = "another"
    assert (await browser.post("/api/v1/tokens", json={"name": "t"})).status_code == 403


async def test_change_with_csrf_token_works(browser: httpx.AsyncClient) -> None:
    assert (await browser.post("/api/v1/tokens", json={"name": "t"})).status_code == 201


async def test_log_out_ends_the_session(browser: httpx.AsyncClient) -> None:
    cookie = browser.cookies["thalweg_session"]
    assert (await browser.delete("/api/v1/session")).status_code == 204
    browser.cookies.set("thalweg_session", cookie)
    assert (await browser.get("/api/v1/session")).status_code == 401


async def test_disabling_a_user_ends_their_session(browser: httpx.AsyncClient, app: FastAPI, users: Users) -> None:
    viewer = make_client(app)
    await viewer.post("/api/v1/session", json={"name": "viewer", "password": PASSWORD})
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}"
    answer = await browser.patch(path, json={"enabled": False}, headers={"If-Match": "*"})
    assert answer.status_code == 200
    assert (await viewer.get("/api/v1/session")).status_code == 401


async def test_expired_session_is_refused(browser: httpx.AsyncClient, resources: Resources) -> None:
    async with resources.sessions() as session:
        await session.execute(text("UPDATE sessions SET expires_at = now() - interval '1 second'"))
        await session.commit()
    assert (await browser.get("/api/v1/session")).status_code == 401


async def test_login_is_audited_without_the_password(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/api/v1/audit")
    assert [entry["action"] for entry in answer.json()["items"]] == ["session_create"]
    assert PASSWORD not in answer.text


async def test_nothing_is_open_without_login(anonymous: httpx.AsyncClient) -> None:
    document = (await anonymous.get("/api/v1/openapi.json")).json()
    for path, methods in document["paths"].items():
        if "get" in methods and path.startswith("/api/"):
            address = path.replace("{error_id}", "1").replace("{destination_id}", "a")
            for part in ("stream_id", "database_id", "user_id", "engine_id", "operation_id", "token_id"):
                address = address.replace(f"{{{part}}}", "abcdefgh")
            query = {"role": "source"} if path.endswith("/preflight") else {}
            answer = await anonymous.get(address, params=query)
            assert answer.status_code == 401, path
            assert answer.json()["cure"]
