"""An admin demands a second factor: who lacks one can set it up, and nothing else."""

import re

import httpx
import pytest
from fastapi import FastAPI

from tests.conftest import Users, make_client
from tests.support.authenticator import Authenticator, browser_of
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role

POLICY = "/api/v1/access-policy"
OPEN = {"session_create", "session_verify_code", "engines_enrol", "health_live", "health_ready"}
SET_UP = {
    "session_get", "session_delete", "users_get_second_factor", "users_prepare_second_factor",
    "users_confirm_second_factor",
}  # fmt: skip


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Authenticator:
    device = Authenticator()
    device.control(monkeypatch)
    return device


async def demand(admin: httpx.AsyncClient, of: str) -> None:
    answer = await admin.patch(POLICY, json={"require_second_factor": of}, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text


async def missing(client: httpx.AsyncClient) -> bool:
    return bool((await client.get("/api/v1/session")).json()["second_factor_missing"])


async def test_only_admins_say_what_is_demanded(admin: httpx.AsyncClient, operator: httpx.AsyncClient) -> None:
    found = await admin.get(POLICY)
    assert (found.json()["require_second_factor"], found.headers["etag"]) == ("nobody", found.json()["etag"])
    assert (await operator.get(POLICY)).status_code == 403
    body = {"require_second_factor": "admins"}
    assert (await operator.patch(POLICY, json=body, headers={"If-Match": "*"})).status_code == 403
    assert (await admin.patch(POLICY, json=body)).status_code == 428
    assert (await admin.patch(POLICY, json=body, headers={"If-Match": found.json()["etag"]})).status_code == 200
    stale = {"If-Match": found.json()["etag"]}
    assert (await admin.patch(POLICY, json={"require_second_factor": "nobody"}, headers=stale)).status_code == 412
    entry = (await admin.get("/api/v1/audit")).json()["items"][0]
    assert (entry["action"], entry["before"]["require_second_factor"], entry["after"]["require_second_factor"]) == (
        "access_policy_update", "nobody", "admins",
    )  # fmt: skip


async def test_of_whom_it_is_demanded(app: FastAPI, users: Users, admin: httpx.AsyncClient) -> None:
    browsers = {name: await browser_of(app, name) for name in ("viewer", "operator", "admin")}
    for of, lacking in (("nobody", set()), ("admins", {"admin"}), ("everybody", set(browsers))):
        await demand(admin, of)
        assert {name for name, browser in browsers.items() if await missing(browser)} == lacking
    await demand(admin, "admins")
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}"
    assert (await browsers["viewer"].get("/api/v1/engines")).status_code == 200
    await admin.patch(path, json={"role": "admin"}, headers={"If-Match": "*"})
    assert (await browsers["viewer"].get("/api/v1/engines")).json()["code"] == "second_factor_demanded"


async def test_everything_but_setting_it_up_is_refused(app: FastAPI, users: Users, admin: httpx.AsyncClient) -> None:
    await demand(admin, "everybody")
    browser = await browser_of(app, "admin")
    for path, item in app.openapi()["paths"].items():
        for method, operation in item.items():
            if operation["operationId"] in OPEN | SET_UP:
                continue
            address = re.sub(r"\{\w+\}", "abcdefgh", path)
            answer = await browser.request(method, address, json={}, params={"role": "source"})
            assert answer.status_code in (403, 422), (method, path, answer.text)
            if answer.status_code == 403:
                assert answer.json()["code"] == "second_factor_demanded", (method, path)
    own = f"/api/v1/users/{users.ids[Role.ADMIN]}"
    token = await browser.post("/api/v1/tokens", json={"name": "a way around"})
    assert (token.status_code, token.json()["code"]) == (403, "second_factor_demanded")
    assert f"{own}:prepare-second-factor" in token.json()["cure"]
    proof = {"current_password": "a guess", "code": "000000"}
    for action, body in (
        ("remove-second-factor", proof),
        ("renew-recovery-codes", proof),
        ("change-password", {"new_password": "weathered copper kettle"}),
    ):
        refused = await browser.post(f"{own}:{action}", json=body)
        assert refused.json()["code"] == "second_factor_demanded", action


async def test_setting_it_up_opens_everything(
    app: FastAPI, users: Users, admin: httpx.AsyncClient, device: Authenticator
) -> None:
    await demand(admin, "everybody")
    browser = await browser_of(app, "viewer")
    assert await missing(browser)
    own = f"/api/v1/users/{users.ids[Role.VIEWER]}"
    assert (await browser.get(f"{own}/second-factor")).json() == {
        "enabled": False, "since": None, "recovery_codes_left": 0, "demanded": True,
    }  # fmt: skip
    await device.set_up(browser, users.ids[Role.VIEWER])
    assert not await missing(browser)
    assert (await browser.post("/api/v1/tokens", json={"name": "ci"})).status_code == 201
    kept = await browser.post(f"{own}:remove-second-factor", json={"current_password": "x", "code": "1"})
    assert (kept.status_code, "replaces" in kept.json()["cure"]) == (409, True)
    assert (await admin.post(f"{own}:reset-second-factor")).status_code == 204
    assert await missing(await browser_of(app, "viewer"))


async def test_tokens_are_not_asked(admin: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    await demand(admin, "everybody")
    assert (await viewer.get("/api/v1/engines")).status_code == 200
    assert not await missing(viewer)
    assert (await viewer.post("/api/v1/tokens", json={"name": "ci"})).status_code == 201


async def test_events_end_when_one_is_demanded(
    app: FastAPI, users: Users, admin: httpx.AsyncClient, resources: Resources
) -> None:
    async with resources.sessions() as session:
        browser = await browser_of(app, "viewer")
        cookie = browser.cookies["thalweg_session"]
        principal = await resources.authenticator.by_cookie(session, cookie, None, True)
        assert principal is not None
        assert await resources.authenticator.still_valid(session, principal)
        await session.commit()
    await demand(admin, "everybody")
    async with resources.sessions() as session:
        assert not await resources.authenticator.still_valid(session, principal)


async def test_logging_out_stays_possible(app: FastAPI, users: Users, admin: httpx.AsyncClient) -> None:
    await demand(admin, "everybody")
    browser = await browser_of(app, "viewer")
    assert (await browser.delete("/api/v1/session")).status_code == 204
    async with make_client(app) as client:
        assert (await client.get("/api/v1/session")).status_code == 401
