"""Users, their roles and API tokens."""

import re

import httpx
import pytest
from fastapi import FastAPI

from tests.conftest import PASSWORD, Users, make_client
from thalweg.kernel.principal import Role

NEW = {"name": "Ada", "role": "operator", "password": "a password of hers"}


async def test_admin_makes_changes_and_deletes_a_user(admin: httpx.AsyncClient) -> None:
    made = await admin.post("/api/v1/users", json=NEW)
    assert made.status_code == 201
    path = made.headers["location"]
    assert made.json()["role"] == "operator"
    changed = await admin.patch(path, json={"role": "viewer"}, headers={"If-Match": made.json()["etag"]})
    assert changed.json()["role"] == "viewer"
    assert changed.headers["etag"] != made.headers["etag"]
    assert (await admin.delete(path)).status_code == 204
    assert (await admin.get(path)).status_code == 404


async def test_name_is_unique(admin: httpx.AsyncClient) -> None:
    await admin.post("/api/v1/users", json=NEW)
    again = await admin.post("/api/v1/users", json=NEW)
    assert (again.status_code, again.json()["code"]) == (409, "name_taken")


async def test_update_needs_the_current_etag(admin: httpx.AsyncClient) -> None:
    user = (await admin.post("/api/v1/users", json=NEW)).json()
    path = f"/api/v1/users/{user['id']}"
    missing = await admin.patch(path, json={"role": "admin"})
    assert (missing.status_code, missing.json()["code"]) == (428, "if_match_required")
    await admin.patch(path, json={"role": "admin"}, headers={"If-Match": user["etag"]})
    stale = await admin.patch(path, json={"role": "viewer"}, headers={"If-Match": user["etag"]})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_resource")


@pytest.mark.parametrize("change", [{"role": "viewer"}, {"enabled": False}])
async def test_last_admin_stays(admin: httpx.AsyncClient, users: Users, change: dict[str, object]) -> None:
    path = f"/api/v1/users/{users.ids[Role.ADMIN]}"
    answer = await admin.patch(path, json=change, headers={"If-Match": "*"})
    assert answer.status_code == 409
    assert "Make another user an admin" in answer.json()["cure"]


async def test_nobody_deletes_themselves(admin: httpx.AsyncClient, users: Users) -> None:
    assert (await admin.delete(f"/api/v1/users/{users.ids[Role.ADMIN]}")).status_code == 409


async def test_roles(viewer: httpx.AsyncClient, operator: httpx.AsyncClient) -> None:
    assert (await viewer.get("/api/v1/databases")).status_code == 200
    refused = await viewer.post("/api/v1/databases", json={})
    assert refused.status_code in (403, 422)
    refused = await viewer.delete("/api/v1/databases/abcdefgh")
    assert refused.json()["code"] == "permission_denied"
    assert (await operator.delete("/api/v1/databases/abcdefgh")).status_code == 404
    assert (await operator.get("/api/v1/users")).status_code == 403
    assert (await operator.get("/api/v1/audit")).status_code == 403


async def test_own_password_needs_the_current_one(viewer: httpx.AsyncClient, users: Users, app: FastAPI) -> None:
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}:change-password"
    wrong = await viewer.post(path, json={"current_password": "no", "new_password": "a kettle of copper"})
    assert wrong.status_code == 403
    right = await viewer.post(path, json={"current_password": PASSWORD, "new_password": "a kettle of copper"})
    assert right.status_code == 204
    async with make_client(app) as browser:
        login = await browser.post("/api/v1/session", json={"name": "viewer", "password": "a kettle of copper"})
    assert login.status_code == 201


async def test_others_password_needs_an_admin(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, users: Users
) -> None:
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}:change-password"
    body = {"new_password": "a kettle of copper"}
    assert (await operator.post(path, json=body)).status_code == 403
    assert (await admin.post(path, json=body)).status_code == 204


async def test_a_new_password_can_end_the_user_s_tokens(
    app: FastAPI, admin: httpx.AsyncClient, viewer: httpx.AsyncClient, users: Users
) -> None:
    made = (await viewer.post("/api/v1/tokens", json={"name": "of somebody else"})).json()["secret"]
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}:change-password"
    async with make_client(app, {"Authorization": f"Bearer {made}"}) as other:
        body = {"current_password": PASSWORD, "new_password": "a kettle of copper"}
        assert (await viewer.post(path, json=body)).status_code == 204
        assert (await other.get("/api/v1/session")).status_code == 200
        body = {"current_password": "a kettle of copper", "new_password": PASSWORD, "revoke_tokens": True}
        assert (await other.post(path, json=body)).status_code == 204
        # The token that has asked for it stays, with the one that it was made with.
        assert [(await client.get("/api/v1/session")).status_code for client in (other, viewer)] == [200, 200]
        await viewer.post("/api/v1/tokens", json={"name": "beside it"})
        assert (await admin.post(path, json={"new_password": PASSWORD, "revoke_tokens": True})).status_code == 204
        for client in (other, viewer):
            assert (await client.get("/api/v1/session")).status_code == 401
    assert (await admin.get("/api/v1/session")).status_code == 200
    entry = (await admin.get("/api/v1/audit")).json()["items"][0]
    assert (entry["action"], entry["after"]) == ("users_change_password", {"tokens_revoked": True})


async def test_token_is_shown_once_and_works_until_revoked(operator: httpx.AsyncClient, app: FastAPI) -> None:
    made = (await operator.post("/api/v1/tokens", json={"name": "ci", "role": "operator"})).json()
    async with make_client(app, {"Authorization": f"Bearer {made['secret']}"}) as client:
        assert (await client.get("/api/v1/session")).json()["user"]["name"] == "operator"
        listed = await operator.get("/api/v1/tokens")
        assert made["secret"] not in listed.text
        assert made["secret"].startswith(made["token"]["prefix"])
        assert (await operator.delete(f"/api/v1/tokens/{made['token']['id']}")).status_code == 204
        assert (await client.get("/api/v1/session")).status_code == 401


async def test_token_never_outranks_its_owner(operator: httpx.AsyncClient) -> None:
    answer = await operator.post("/api/v1/tokens", json={"name": "ci", "role": "admin"})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


async def test_token_falls_with_its_owner(admin: httpx.AsyncClient, operator: httpx.AsyncClient, users: Users) -> None:
    path = f"/api/v1/users/{users.ids[Role.OPERATOR]}"
    await admin.patch(path, json={"role": "viewer"}, headers={"If-Match": "*"})
    assert (await operator.delete("/api/v1/databases/abcdefgh")).status_code == 403


async def test_tokens_of_others_are_hidden(viewer: httpx.AsyncClient, operator: httpx.AsyncClient) -> None:
    mine = (await operator.get("/api/v1/tokens")).json()["items"]
    assert {token["user_name"] for token in mine} == {"operator"}
    assert (await viewer.delete(f"/api/v1/tokens/{mine[0]['id']}")).status_code == 404


async def test_list_comes_in_parts(admin: httpx.AsyncClient) -> None:
    names, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await admin.get("/api/v1/users", params=query)).json()
        names += [user["name"] for user in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == ["admin", "operator", "viewer"]


async def test_foreign_cursor_is_refused(admin: httpx.AsyncClient) -> None:
    for cursor in ("nonsense", "W10", "WyJhIl0", "eyJhIjoxfQ"):
        answer = await admin.get("/api/v1/users", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/query/cursor")


async def test_token_neither_outlives_nor_survives_the_one_it_was_made_with(
    operator: httpx.AsyncClient, app: FastAPI
) -> None:
    first = (await operator.post("/api/v1/tokens", json={"name": "ci", "expires_in_days": 30})).json()
    async with make_client(app, {"Authorization": f"Bearer {first['secret']}"}) as client:
        for days in (31, 3650, None):
            refused = await client.post("/api/v1/tokens", json={"name": "longer", "expires_in_days": days})
            assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied"), days
            assert "29 at most" in refused.json()["cure"]
        ranked = await client.post("/api/v1/tokens", json={"name": "b", "role": "operator", "expires_in_days": 29})
        assert ranked.status_code == 403
        second = (await client.post("/api/v1/tokens", json={"name": "child", "expires_in_days": 29})).json()
    async with make_client(app, {"Authorization": f"Bearer {second['secret']}"}) as client:
        third = (await client.post("/api/v1/tokens", json={"name": "grandchild", "expires_in_days": 1})).json()
    await operator.delete(f"/api/v1/tokens/{first['token']['id']}")
    for token in (second, third):
        async with make_client(app, {"Authorization": f"Bearer {token['secret']}"}) as client:
            assert (await client.get("/api/v1/session")).status_code == 401
    assert (await operator.get("/api/v1/session")).status_code == 200


@pytest.mark.parametrize(
    "password", ["password123", "qwertyuiop12", "Thalweg2026!", "ada.lovelace.1", "aaaaaaaaaaaa", "1234567890"]
)
async def test_password_that_can_be_guessed_is_refused(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, users: Users, password: str
) -> None:
    made = await admin.post("/api/v1/users", json={"name": "ada.lovelace", "password": password})
    assert (made.status_code, made.json()["errors"][0]["code"]) == (422, "weak_password")
    assert made.json()["errors"][0]["pointer"] == "/password"
    body = {"current_password": PASSWORD, "new_password": password}
    path = f"/api/v1/users/{users.ids[Role.VIEWER]}"
    await admin.patch(path, json={"name": "ada.lovelace"}, headers={"If-Match": "*"})
    changed = await viewer.post(f"{path}:change-password", json=body)
    assert (changed.status_code, changed.json()["errors"][0]["pointer"]) == (422, "/new_password")


async def test_a_scraper_s_token_reads_metrics_and_nothing_else(
    viewer: httpx.AsyncClient, admin: httpx.AsyncClient, anonymous: httpx.AsyncClient, app: FastAPI
) -> None:
    refused = await anonymous.get("/metrics")
    assert (refused.status_code, refused.json()["code"]) == (401, "authentication_required")
    assert "thalweg_api_requests_total" in (await viewer.get("/metrics")).text
    made = (await viewer.post("/api/v1/tokens", json={"name": "prometheus", "role": "metrics"})).json()
    async with make_client(app, {"Authorization": f"Bearer {made['secret']}"}) as scraper:
        assert "thalweg_api_requests_total" in (await scraper.get("/metrics")).text
        for path, item in app.openapi()["paths"].items():
            for method in item:
                if path not in ("/metrics", "/healthz", "/readyz", "/api/v1/session", "/api/v1/engines/enrol"):
                    address = re.sub(r"\{\w+\}", "abcdefgh", path)
                    answer = await scraper.request(method, address, json={})
                    assert answer.status_code in (403, 422), (method, path, answer.text)
        assert (await scraper.get("/api/v1/session")).json()["code"] == "permission_denied"
    user = {"name": "scraper", "password": "weathered copper kettle", "role": "metrics"}
    assert (await admin.post("/api/v1/users", json=user)).status_code == 422
