"""Commands about who may log in and which engines there are, and that the API shows what they have done."""

import json
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tests.conftest import PASSWORD, Users
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from tests.test_propagation import Enrolled, pair  # noqa: F401
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role


@pytest.fixture
def run(shell: Shell, users: Users) -> Shell:  # noqa: F811
    return with_token(shell, users, Role.ADMIN)


async def named(client: httpx.AsyncClient, path: str, name: str) -> dict[str, Any] | None:
    items = (await client.get(path)).json()["items"]
    return next((item for item in items if item["name"] == name), None)


async def test_a_password_that_the_administration_sets_ends_the_wait(
    shell: Shell,  # noqa: F811
    users: Users,
    resources: Resources,
) -> None:
    login = ["login", "--user", "admin", "--password-stdin"]
    for _ in range(6):
        assert (await shell(*login, stdin="wrong\n")).code in (1, 3), "refused, or too early on a fast host"
    async with resources.sessions() as session:
        later = "UPDATE login_throttles SET blocked_until = now() + interval '1 hour' WHERE key LIKE 'name:%'"
        await session.execute(text(later))
        await session.commit()
    waits = await shell(*login, stdin=f"{PASSWORD}\n")
    assert (waits.code, "Wait " in waits.err) == (1, True), waits.err
    told = await shell.admin("set-password", "admin", "--output", "json", stdin="weathered copper kettle\n")
    assert json.loads(told.out) == {"name": "admin", "created": False}
    right = await shell(*login, stdin="weathered copper kettle\n")
    assert right.code == 0, right.err


async def test_users_are_added_changed_and_removed(run: Shell, shell: Shell, admin: httpx.AsyncClient) -> None:  # noqa: F811
    added = await run("users", "add", "grace", "--role", "operator", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert (added.code, added.out.strip()) == (0, "Added grace (operator)."), added.err
    user = await named(admin, "/api/v1/users", "grace")
    assert user is not None and (user["role"], user["enabled"]) == ("operator", True)
    login = ["login", "--password-stdin", "--user"]
    assert (await shell(*login, "grace", stdin=f"{PASSWORD}\n")).code == 0

    changed = await run("users", "edit", "grace", "--name", "hopper", "--role", "viewer", "--no-enabled")
    assert (changed.code, changed.out.strip()) == (0, "hopper: viewer, disabled."), changed.err
    shown = (await admin.get(f"/api/v1/users/{user['id']}")).json()
    assert (shown["name"], shown["role"], shown["enabled"]) == ("hopper", "viewer", False)
    assert (await shell(*login, "hopper", stdin=f"{PASSWORD}\n")).code == 3
    nothing = await run("users", "edit", "hopper")
    assert (nothing.code, "Nothing to change" in nothing.err) == (1, True)

    removed = await run("users", "remove", "hopper")
    assert removed.code == 0, removed.err
    assert (await admin.get(f"/api/v1/users/{user['id']}")).status_code == 404
    assert (await run("users", "remove", "hopper")).code == 1


async def test_a_revoked_token_does_nothing_any_more(run: Shell, admin: httpx.AsyncClient) -> None:
    made = json.loads((await run("tokens", "add", "ci", "--role", "viewer", "--output", "json")).out)
    with_it = Shell({**run.environment, "THALWEG_TOKEN": made["secret"]})
    assert (await with_it("status")).code == 0
    revoked = await run("tokens", "revoke", "ci")
    assert revoked.code == 0, revoked.err
    token = await named(admin, "/api/v1/tokens", "ci")
    assert token is not None and token["revoked_at"] is not None
    assert (await with_it("status")).code == 3


async def test_an_engine_s_address_is_changed_and_the_engine_removed(
    run: Shell,
    admin: httpx.AsyncClient,
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
) -> None:
    alpha, bravo = pair
    addressed = await run("engines", "address", "bravo", "10.9.8.7:8700")
    assert (addressed.code, addressed.out.strip()) == (0, "Engines send to bravo at 10.9.8.7:8700."), addressed.err
    assert (await admin.get(bravo.path)).json()["propagation_address"] == "10.9.8.7:8700"
    assert (await admin.get(alpha.path)).json()["propagation_address"] is None
    removed = await run("engines", "remove", "bravo")
    assert removed.code == 0, removed.err
    assert (await admin.get(bravo.path)).status_code == 404
    assert (await admin.get(alpha.path)).status_code == 200
    assert (await run("engines", "remove", "bravo")).code == 1
