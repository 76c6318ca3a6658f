"""Certificates and keys of databases: PEM contents go in and never come out, and no path reaches libpq."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from sqlalchemy import text

from tests.conftest import Sides
from tests.features.test_databases import PATH, try_settings
from tests.support.tls import Authority, TlsServer, key_pem, start_tls_server
from thalweg.db.models import DatabaseRow
from thalweg.inspection.target import stored_target
from thalweg.kernel.context import Resources

ANY = {"If-Match": "*"}


@pytest.fixture(scope="module")
def tls() -> Generator[TlsServer, None, None]:
    server = start_tls_server()
    yield server
    server.cluster.stop()


@pytest.fixture
def keyholder(tls: TlsServer) -> dict[str, Any]:
    certificate, key = tls.authority.issue("keyholder")
    return {
        "name": "vault", "host": "127.0.0.1", "port": tls.cluster.port, "dbname": "postgres", "user": "keyholder",
        "sslmode": "verify-full", "sslrootcert": tls.authority.certificate, "sslcert": certificate, "sslkey": key,
    }  # fmt: skip


def open_files() -> list[str]:
    links = [path.readlink().name for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return [name for name in links if "thalweg-pem" in name]


async def test_certificate_and_key_let_a_user_in(operator: httpx.AsyncClient, keyholder: dict[str, Any]) -> None:
    result = await try_settings(operator, keyholder)
    assert (result["code"], result["tls"], result["role"]["name"]) == (None, True, "keyholder")
    assert not open_files()
    without = await try_settings(operator, keyholder, sslcert="", sslkey="")
    assert without["code"] is not None


async def test_server_is_checked_against_the_given_authority(
    operator: httpx.AsyncClient, tls: TlsServer, keyholder: dict[str, Any]
) -> None:
    other = await try_settings(operator, keyholder, sslrootcert=Authority("Somebody else").certificate)
    assert other["code"] == "tls_failed"
    revoked = await try_settings(operator, keyholder, sslcrl=tls.authority.revocations(tls.certificate))
    assert revoked["code"] == "tls_failed"
    none_revoked = await try_settings(operator, keyholder, sslcrl=tls.authority.revocations())
    assert none_revoked["code"] is None


async def test_contents_are_sealed_and_never_come_out(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, keyholder: dict[str, Any], resources: Resources
) -> None:
    made = await operator.post(PATH, json=keyholder)
    assert made.status_code == 201, made.text
    shown = made.json()
    assert shown["sslcert"]["subject"] == "CN=keyholder"
    assert shown["sslrootcert"]["subject"] == "CN=Test authority"
    assert shown["sslrootcert"]["expires_at"] is not None
    assert shown["sslkey"] == {"subject": None, "expires_at": None}
    assert shown["sslcrl"] is None
    for answer in (made, await operator.get(PATH), await admin.get("/api/v1/audit")):
        assert "BEGIN" not in answer.text
    async with resources.sessions() as session:
        assert "BEGIN" not in (await session.execute(text("SELECT pem::text FROM databases"))).scalar_one()
        row = await session.get_one(DatabaseRow, shown["id"])
        conninfo = stored_target(row, resources.secrets).for_engine()
    assert keyholder["sslkey"].strip() in conninfo
    assert (await operator.post(f"{PATH}/{shown['id']}/test")).json()["code"] is None


async def test_stored_key_is_used_when_a_test_leaves_it_out(
    operator: httpx.AsyncClient, keyholder: dict[str, Any]
) -> None:
    made = (await operator.post(PATH, json=keyholder)).json()
    bare = {**keyholder, "sslcert": "", "sslkey": "", "sslrootcert": ""}
    assert (await try_settings(operator, bare, database_id=made["id"]))["code"] is None
    removed = await operator.patch(f"{PATH}/{made['id']}", json={"sslcert": "", "sslkey": ""}, headers=ANY)
    assert (removed.json()["sslcert"], removed.json()["sslkey"]) == (None, None)


@pytest.mark.parametrize("field", ["sslrootcert", "sslcert", "sslkey", "sslcrl"])
@pytest.mark.parametrize("value", ["/etc/ssl/private/key.pem", "PATH:x", "-----BEGIN CERTIFICATE-----\nx"])
async def test_what_is_not_pem_is_refused(
    operator: httpx.AsyncClient, keyholder: dict[str, Any], field: str, value: str
) -> None:
    answer = await operator.post(PATH, json={**keyholder, field: value})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == f"/{field}"
    options = await operator.post(PATH, json={**keyholder, "options": {field: value}})
    assert options.status_code == 422
    assert options.json()["errors"][0]["pointer"].startswith("/options")


async def test_paths_among_the_options_are_refused_with_the_cure(operator: httpx.AsyncClient, sides: Sides) -> None:
    answer = await operator.post(PATH, json={**sides.source, "options": {"sslrootcert": "/etc/ssl/root.crt"}})
    assert "PEM" in answer.json()["errors"][0]["message"]


async def test_certificate_and_key_must_fit(operator: httpx.AsyncClient, keyholder: dict[str, Any]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"phrase")).decode()
    for changes, told in (
        ({"sslkey": key_pem(key)}, "does not belong"),
        ({"sslkey": encrypted}, "without its passphrase"),
        ({"sslkey": ""}, "needs its sslkey"),
        ({"sslcert": ""}, "needs its sslcert"),
    ):
        answer = await operator.post(PATH, json={**keyholder, **changes})
        assert answer.status_code == 422
        assert told in answer.json()["errors"][0]["message"]


async def test_paths_of_older_versions_are_refused_with_the_cure(
    operator: httpx.AsyncClient, sides: Sides, tls: TlsServer, resources: Resources, tmp_path: Any
) -> None:
    made = (await operator.post(PATH, json=sides.source)).json()
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.write_text("secret")
    answers = []
    for path in (there, missing):
        async with resources.sessions() as session:
            row = await session.get_one(DatabaseRow, made["id"])
            row.options = {"sslkey": str(path)}
            await session.commit()
        answers.append((await operator.post(f"{PATH}/{made['id']}/test")).json())
    assert answers[0] == answers[1]
    assert answers[0]["code"] == "connection_setting_refused"
    assert "PEM" in answers[0]["cure"]
    certificate, key = tls.authority.issue(sides.source["user"])
    mended = await operator.patch(f"{PATH}/{made['id']}", json={"sslcert": certificate, "sslkey": key}, headers=ANY)
    assert mended.json()["options"] == {}
    assert (await operator.post(f"{PATH}/{made['id']}/test")).json()["code"] is None


@pytest.mark.parametrize(
    "options",
    [
        {"service": "x"}, {"passfile": "/nowhere/.pgpass"}, {"options": "-c x=y"}, {"hostaddr": "127.0.0.1"},
        {"krbsrvname": "x"}, {"require_auth": "none"}, {"servicefile": "/x"}, {"sslpassword": "x"},
        {"gssencmode": "/x"}, {"connect_timeout": "-1"}, {"target_session_attrs": "x y"},
    ],
)  # fmt: skip
async def test_every_other_option_is_on_a_list(
    operator: httpx.AsyncClient, sides: Sides, options: dict[str, str]
) -> None:
    answer = await operator.post(PATH, json={**sides.source, "options": options})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/options")
