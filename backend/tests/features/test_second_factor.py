"""A second factor: set up, asked for at the login, of use once, taken away."""

import asyncio

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from tests.conftest import PASSWORD, Users, make_client
from tests.support.authenticator import Authenticator, browser_of
from thalweg.features.identity.proof import recovery_hash
from thalweg.kernel import passwords
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role

LOGIN = {"name": "viewer", "password": PASSWORD}
VERIFY = "/api/v1/session:verify-code"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Authenticator:
    device = Authenticator()
    device.control(monkeypatch)
    return device


@pytest.fixture
def path(users: Users) -> str:
    return f"/api/v1/users/{users.ids[Role.VIEWER]}"


@pytest.fixture
async def browser(app: FastAPI, users: Users, device: Authenticator) -> httpx.AsyncClient:
    """The viewer's, where the second factor was set up."""
    client = await browser_of(app, "viewer")
    await device.set_up(client, users.ids[Role.VIEWER])
    return client


async def half(app: FastAPI) -> httpx.AsyncClient:
    """A login that waits for the code."""
    client = make_client(app)
    answer = await client.post("/api/v1/session", json=LOGIN)
    assert (answer.status_code, answer.json()["code"]) == (401, "second_factor_required")
    return client


async def older(resources: Resources, code: str) -> None:
    """The recovery code as an older version has kept it."""
    kept = {"hash": await passwords.hash_password(code.replace("-", "")), "beginning": code[:4]}
    async with resources.sessions() as session:
        change = text("UPDATE recovery_codes SET code_hash = :hash WHERE beginning = :beginning")
        assert (await session.execute(change, kept)).rowcount == 1  # type: ignore[attr-defined]
        await session.commit()


async def actions(admin: httpx.AsyncClient) -> list[str]:
    return [entry["action"] for entry in (await admin.get("/api/v1/audit")).json()["items"]]


async def test_nothing_counts_before_a_code_confirms_it(
    app: FastAPI, users: Users, device: Authenticator, path: str
) -> None:
    client = await browser_of(app, "viewer")
    wrong = await client.post(f"{path}:prepare-second-factor", json={"current_password": "a guess"})
    assert (wrong.status_code, wrong.json()["code"]) == (403, "permission_denied")
    for _ in range(12):  # there is nothing to guess: none of them counts
        assert (await client.post(f"{path}:confirm-second-factor", json={"code": "000000"})).status_code == 409
    prepared = (await client.post(f"{path}:prepare-second-factor", json={"current_password": PASSWORD})).json()
    assert prepared["secret"] in prepared["uri"]
    assert prepared["qr_code"].startswith("data:image/svg+xml")
    device.secret = prepared["secret"]
    for code in (device.wrong(), "١٢٣٤٥٦"):
        refused = await client.post(f"{path}:confirm-second-factor", json={"code": code})
        assert (refused.status_code, refused.json()["detail"]) == (403, "The code is wrong.")
    await browser_of(app, "viewer")  # the password alone still does
    assert not (await client.get(f"{path}/second-factor")).json()["enabled"]


async def test_login_takes_the_password_and_then_the_code(
    app: FastAPI, browser: httpx.AsyncClient, admin: httpx.AsyncClient, device: Authenticator
) -> None:
    client = make_client(app)
    wrong = (await client.post("/api/v1/session", json={**LOGIN, "password": "a guess"})).json()
    assert wrong["code"] == "wrong_credentials"
    answer = await client.post("/api/v1/session", json=LOGIN)
    assert answer.json()["type"] == "urn:thalweg:problem:second_factor_required"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age=300" in cookie
    assert (await client.get("/api/v1/session")).status_code == 401
    device.later()
    done = await client.post(VERIFY, json={"code": f"{device.code()[:3]} {device.code()[3:]}"})
    assert (done.status_code, done.json()["user"]["second_factor"]) == (201, True)
    assert (await client.get("/api/v1/session")).json()["user"]["name"] == "viewer"
    again = await client.post(VERIFY, json={"code": device.fresh()})
    assert (again.status_code, again.json()["code"]) == (401, "login_expired")
    assert (await actions(admin))[:2] == ["session_create", "session_code_wanted"]


async def test_a_code_is_of_use_once(app: FastAPI, browser: httpx.AsyncClient, device: Authenticator) -> None:
    client = await half(app)
    used = await client.post(VERIFY, json={"code": device.code()})  # it confirmed the set-up
    assert (used.status_code, used.json()["code"]) == (401, "wrong_code")
    code = device.fresh()
    second = await half(app)
    answers = await asyncio.gather(*(session.post(VERIFY, json={"code": code}) for session in (client, second)))
    assert sorted(answer.status_code for answer in answers) == [201, 401]
    third = await half(app)
    assert (await third.post(VERIFY, json={"code": code})).json()["code"] == "wrong_code"
    assert (await third.post(VERIFY, json={"code": device.code(-1)})).json()["code"] == "wrong_code"
    assert (await third.post(VERIFY, json={"code": device.code(1)})).status_code == 201


async def test_a_half_login_is_short_and_bound_to_its_browser(
    app: FastAPI, browser: httpx.AsyncClient, admin: httpx.AsyncClient, device: Authenticator, path: str
) -> None:
    code = device.fresh()
    stranger = make_client(app)
    assert (await stranger.post(VERIFY, json={"code": code})).json()["code"] == "login_expired"
    late = await half(app)
    device.later(seconds=301)
    assert (await late.post(VERIFY, json={"code": device.code()})).json()["code"] == "login_expired"
    overtaken = await half(app)
    body = {"new_password": "weathered copper kettle"}
    assert (await admin.post(f"{path}:change-password", json=body)).status_code == 204
    assert (await overtaken.post(VERIFY, json={"code": device.code()})).json()["code"] == "login_expired"


async def test_wrong_codes_are_throttled_and_audited(
    app: FastAPI, browser: httpx.AsyncClient, admin: httpx.AsyncClient, device: Authenticator, resources: Resources
) -> None:
    client = await half(app)
    for _ in range(5):
        wrong = await client.post(VERIFY, json={"code": device.wrong()})
        assert (wrong.status_code, wrong.json()["code"]) == (401, "wrong_code")
    async with resources.sessions() as session:
        late = "UPDATE login_throttles SET blocked_until = now() + interval '1 hour' WHERE key LIKE 'code:%'"
        assert (await session.execute(text(late))).rowcount == 1  # type: ignore[attr-defined]
        await session.commit()
    client = await half(app)  # the right password takes nothing of that back
    right = await client.post(VERIFY, json={"code": device.fresh()})
    assert (right.status_code, right.json()["code"]) == (429, "too_many_attempts")
    refusals = [entry for entry in (await admin.get("/api/v1/audit")).json()["items"] if entry["after"]]
    assert [entry["action"] for entry in refusals][:5] == ["session_refused"] * 5
    assert (refusals[0]["via"], refusals[0]["after"]) == ("anonymous", {"lacking": "second_factor"})


async def test_an_attempt_that_never_ends_counts(
    app: FastAPI, browser: httpx.AsyncClient, device: Authenticator, resources: Resources,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from thalweg.features.identity import proof

    began = asyncio.Event()

    async def hang(code: str, stored: str | None) -> bool:
        began.set()
        await asyncio.Event().wait()
        return False

    client = await half(app)
    await older(resources, device.recovery_codes[0])
    monkeypatch.setattr(proof, "verify_password", hang)
    attempt = asyncio.create_task(client.post(VERIFY, json={"code": device.recovery_codes[0]}))
    await began.wait()
    attempt.cancel()
    await asyncio.wait({attempt})
    async with resources.sessions() as session:
        query = "SELECT failures FROM login_throttles WHERE key LIKE 'code:%'"
        assert (await session.execute(text(query))).scalar_one() == 1


@pytest.mark.parametrize("code", ["١٢٣٤٥٦", "ßßßß-efgh-jkmn-pqrs"])
async def test_any_text_is_a_wrong_code(app: FastAPI, browser: httpx.AsyncClient, path: str, code: str) -> None:
    client = await half(app)
    wrong = await client.post(VERIFY, json={"code": code})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "wrong_code")
    proof = {"current_password": PASSWORD, "code": code}
    refused = await browser.post(f"{path}:renew-recovery-codes", json=proof)
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")


async def test_a_recovery_code_lets_in_once(
    app: FastAPI, browser: httpx.AsyncClient, admin: httpx.AsyncClient, device: Authenticator, path: str
) -> None:
    code = device.recovery_codes[0]
    first, second = await half(app), await half(app)
    answers = await asyncio.gather(*(session.post(VERIFY, json={"code": code.upper()}) for session in (first, second)))
    assert sorted(answer.status_code for answer in answers) == [201, 401]
    assert (await browser.get(f"{path}/second-factor")).json()["recovery_codes_left"] == 9
    third = await half(app)
    assert (await third.post(VERIFY, json={"code": code})).json()["code"] == "wrong_code"
    (used,) = [entry for entry in (await admin.get("/api/v1/audit")).json()["items"] if "recovery" in entry["action"]]
    assert (used["action"], used["after"]) == ("users_use_recovery_code", {"recovery_codes_left": 9})
    body = {"current_password": PASSWORD, "code": device.fresh()}
    fresh = (await browser.post(f"{path}:renew-recovery-codes", json=body)).json()["codes"]
    assert len(fresh) == 10
    fourth = await half(app)
    assert (await fourth.post(VERIFY, json={"code": device.recovery_codes[1]})).status_code == 401
    assert (await fourth.post(VERIFY, json={"code": fresh[1]})).status_code == 201


async def test_a_recovery_code_of_an_older_version_lets_in_once(
    app: FastAPI, browser: httpx.AsyncClient, device: Authenticator, resources: Resources
) -> None:
    code = device.recovery_codes[0]
    await older(resources, code)
    beginning = (await half(app)).post(VERIFY, json={"code": f"{code[:4]}-aaaa-aaaa-aaaa"})
    assert (await beginning).json()["code"] == "wrong_code"
    assert (await (await half(app)).post(VERIFY, json={"code": code})).status_code == 201
    assert (await (await half(app)).post(VERIFY, json={"code": code})).json()["code"] == "wrong_code"


async def test_recovery_codes_take_no_turn_of_the_logins(
    app: FastAPI, users: Users, device: Authenticator, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await browser_of(app, "viewer")
    prepared = await client.post(f"{path}:prepare-second-factor", json={"current_password": PASSWORD})
    device.secret = prepared.json()["secret"]
    hashed: list[str] = []
    slow = passwords._hasher.hash
    monkeypatch.setattr(passwords._hasher, "hash", lambda password: hashed.append(password) or slow(password))
    confirmed = await client.post(f"{path}:confirm-second-factor", json={"code": device.code()})
    assert (confirmed.status_code, len(confirmed.json()["codes"])) == (200, 10)
    proof = {"current_password": PASSWORD, "code": device.fresh()}
    renewed = await client.post(f"{path}:renew-recovery-codes", json=proof)
    assert (renewed.status_code, len(renewed.json()["codes"])) == (200, 10)
    assert not hashed


async def test_the_store_holds_neither_secret_nor_recovery_codes(
    browser: httpx.AsyncClient, device: Authenticator, resources: Resources
) -> None:
    async with resources.sessions() as session:
        sealed = (await session.execute(text("SELECT second_factor_sealed FROM users WHERE name = 'viewer'"))).scalar()
        assert resources.secrets.open(str(sealed)) == device.secret
        present = (await session.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))).scalars()
        stored = ""
        for table in sorted(present):
            stored += "".join(str(row) for row in await session.execute(text(f'SELECT t FROM "{table}" t')))
        hashes = (await session.execute(text("SELECT code_hash FROM recovery_codes"))).scalars().all()
    assert device.secret not in stored
    for code in device.recovery_codes:
        assert code not in stored
        assert code.replace("-", "") not in stored
    assert len(hashes) == 10
    assert set(hashes) == {recovery_hash(resources.secrets, code.replace("-", "")) for code in device.recovery_codes}


async def test_switching_on_and_off_ends_other_sessions(
    app: FastAPI, users: Users, admin: httpx.AsyncClient, device: Authenticator, path: str
) -> None:
    client, other = await browser_of(app, "viewer"), await browser_of(app, "viewer")
    await device.set_up(client, users.ids[Role.VIEWER])
    assert (await other.get("/api/v1/session")).status_code == 401
    assert (await client.get("/api/v1/session")).status_code == 200
    device.later()
    other = await browser_of(app, "viewer", device.code())
    waiting = await half(app)
    code = device.fresh()
    for body in ({"current_password": PASSWORD}, {"current_password": "a guess", "code": code}):
        refused = await client.post(f"{path}:remove-second-factor", json=body)
        assert (refused.status_code, refused.json()["detail"]) == (403, "The password or the code is wrong.")
    right = {"current_password": PASSWORD, "code": code}  # beside a wrong password it was not spent
    assert (await client.post(f"{path}:remove-second-factor", json=right)).status_code == 204
    assert (await other.get("/api/v1/session")).status_code == 401
    assert (await waiting.post(VERIFY, json={"code": device.fresh()})).json()["code"] == "login_expired"
    await browser_of(app, "viewer")
    assert [action for action in await actions(admin) if action.startswith("users_")] == [
        "users_remove_second_factor", "users_second_factor_refused", "users_second_factor_refused",
        "users_confirm_second_factor", "users_prepare_second_factor",
    ]  # fmt: skip


async def test_another_device_replaces_the_first_when_it_is_confirmed(
    app: FastAPI, users: Users, browser: httpx.AsyncClient, device: Authenticator, path: str
) -> None:
    old = Authenticator(device.at, device.secret, device.recovery_codes)
    bare = await browser.post(f"{path}:prepare-second-factor", json={"current_password": PASSWORD})
    assert bare.status_code == 403
    await device.set_up(browser, users.ids[Role.VIEWER], old.recovery_codes[0])
    device.later()
    old.at = device.at
    client = await half(app)
    for code in (old.code(), old.recovery_codes[1]):
        assert (await client.post(VERIFY, json={"code": code})).json()["code"] == "wrong_code"
    assert (await client.post(VERIFY, json={"code": device.code()})).status_code == 201


async def test_another_password_voids_what_was_prepared(app: FastAPI, users: Users, path: str) -> None:
    client = await browser_of(app, "viewer")
    prepared = await client.post(f"{path}:prepare-second-factor", json={"current_password": PASSWORD})
    body = {"current_password": PASSWORD, "new_password": "weathered copper kettle"}
    assert (await client.post(f"{path}:change-password", json=body)).status_code == 204
    code = Authenticator(secret=prepared.json()["secret"]).code()
    assert (await client.post(f"{path}:confirm-second-factor", json={"code": code})).status_code == 409


async def test_wrong_proofs_in_a_session_are_throttled(browser: httpx.AsyncClient, path: str) -> None:
    body = {"current_password": "a guess", "code": "000000"}
    answers = await asyncio.gather(*(browser.post(f"{path}:remove-second-factor", json=body) for _ in range(7)))
    assert {answer.status_code for answer in answers} == {403, 429}


async def test_an_admin_resets_somebody_else_s(
    app: FastAPI, browser: httpx.AsyncClient, admin: httpx.AsyncClient, operator: httpx.AsyncClient, users: Users,
    path: str,
) -> None:  # fmt: skip
    assert (await operator.post(f"{path}:reset-second-factor")).status_code == 403
    assert (await operator.get(f"{path}/second-factor")).status_code == 403
    others = await operator.post(f"{path}:remove-second-factor", json={"current_password": PASSWORD})
    assert others.status_code == 403
    own = await admin.post(f"/api/v1/users/{users.ids[Role.ADMIN]}:reset-second-factor")
    assert (own.status_code, "thalweg-admin" in own.json()["cure"]) == (409, True)
    assert (await admin.get(f"{path}/second-factor")).json()["enabled"]
    assert (await admin.post(f"{path}:reset-second-factor")).status_code == 204
    assert (await browser.get("/api/v1/session")).status_code == 401
    await browser_of(app, "viewer")
    assert (await admin.post(f"{path}:reset-second-factor")).status_code == 409
    entry = (await admin.get("/api/v1/audit")).json()["items"][1]
    assert (entry["action"], entry["before"], entry["after"]) == (
        "users_reset_second_factor", {"second_factor": True}, {"second_factor": False},
    )  # fmt: skip


async def test_another_key_says_what_cures_it(
    app: FastAPI, browser: httpx.AsyncClient, device: Authenticator, resources: Resources
) -> None:
    async with resources.sessions() as session:
        await session.execute(text("UPDATE users SET second_factor_sealed = 'gAAAAAB' WHERE name = 'viewer'"))
        await session.commit()
    client = await half(app)
    answer = await client.post(VERIFY, json={"code": device.fresh()})
    assert (answer.status_code, answer.json()["code"]) == (500, "secret_key_mismatch")
    assert "reset-second-factor" in answer.json()["cure"]
