"""Registered databases: what goes in, what never comes out, and what a test of the connection says."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import text

from tests.conftest import Sides
from tests.support.servers import free_port
from thalweg.kernel.context import Resources
from thalweg.kernel.libpq_environment import forget_libpq_environment
from thalweg.kernel.secret_box import SecretBox

PATH = "/api/v1/databases"


async def try_settings(client: httpx.AsyncClient, body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    settings = {key: value for key, value in {**body, **changes}.items() if key != "name"}
    answer = await client.post("/api/v1/databases:test", json=settings)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_password_never_comes_out(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, sides: Sides, resources: Resources
) -> None:
    made = await operator.post(PATH, json=sides.source)
    assert made.status_code == 201
    assert made.json()["has_password"] is True
    path = made.headers["location"]
    for answer in (made, await operator.get(path), await operator.get(PATH), await admin.get("/api/v1/audit")):
        assert sides.source["password"] not in answer.text
    async with resources.sessions() as session:
        stored = (await session.execute(text("SELECT password_sealed FROM databases"))).scalar_one()
    assert sides.source["password"] not in stored


async def test_tests_of_connections_are_audited(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, sides: Sides
) -> None:
    """Of registered databases: who has let the control plane connect, and with what result."""
    made = (await operator.post(PATH, json=sides.source)).json()
    assert (await operator.post(f"{PATH}/{made['id']}/test")).json()["code"] is None
    sides.cluster.execute(f"ALTER ROLE {sides.source['user']} NOLOGIN")
    failed = (await operator.post(f"{PATH}/{made['id']}/test")).json()["code"]
    assert failed == "authentication_failed"
    entries = (await admin.get("/api/v1/audit", params={"target_id": made["id"]})).json()["items"]
    told = [(entry["actor_name"], entry["after"]) for entry in entries if entry["action"] == "databases_test"]
    assert told == [("operator", {"code": failed}), ("operator", {"code": None})]


async def test_update_changes_only_what_is_sent(operator: httpx.AsyncClient, sides: Sides) -> None:
    made = (await operator.post(PATH, json=sides.source)).json()
    path = f"{PATH}/{made['id']}"
    answer = await operator.patch(path, json={"name": "store"}, headers={"If-Match": made["etag"]})
    assert answer.json() == {**made, "name": "store", "etag": '"2"', "updated_at": answer.json()["updated_at"]}
    assert (await operator.post(f"{path}/test")).json()["code"] is None
    stale = await operator.patch(path, json={"name": "other"}, headers={"If-Match": made["etag"]})
    assert stale.status_code == 412


async def test_idempotency_key_creates_once(operator: httpx.AsyncClient, sides: Sides) -> None:
    headers = {"Idempotency-Key": "key-of-this-test"}
    first = await operator.post(PATH, json=sides.source, headers=headers)
    again = await operator.post(PATH, json=sides.source, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again.headers["idempotent-replay"] == "true"
    assert again.headers["location"] == first.headers["location"]
    other = await operator.post(PATH, json={**sides.source, "name": "other"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len((await operator.get(PATH)).json()["items"]) == 1


async def test_the_store_does_not_help_to_guess_a_repeated_request(
    operator: httpx.AsyncClient, sides: Sides, resources: Resources
) -> None:
    content = json.dumps(sides.source).encode()
    headers = {"Idempotency-Key": "key-of-this-test", "Content-Type": "application/json"}
    assert (await operator.post(PATH, content=content, headers=headers)).status_code == 201
    async with resources.sessions() as session:
        stored = (await session.execute(text("SELECT request_hash FROM idempotency_keys"))).scalar_one()
    guess = f"POST {PATH}\n".encode() + content
    assert stored != hashlib.sha256(guess).hexdigest()
    assert stored == resources.secrets.keyed_hash("idempotency", guess)
    assert stored != SecretBox(Fernet.generate_key()).keyed_hash("idempotency", guess)


async def test_failed_request_frees_its_idempotency_key(operator: httpx.AsyncClient, sides: Sides) -> None:
    await operator.post(PATH, json=sides.source)
    headers = {"Idempotency-Key": "key-of-this-test"}
    assert (await operator.post(PATH, json=sides.source, headers=headers)).status_code == 409
    other = await operator.post(PATH, json={**sides.source, "name": "other"}, headers=headers)
    assert other.status_code == 201


async def test_unknown_option_is_refused(operator: httpx.AsyncClient, sides: Sides) -> None:
    answer = await operator.post(PATH, json={**sides.source, "options": {"service": "x"}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/options"


async def test_connection_that_works(operator: httpx.AsyncClient, sides: Sides) -> None:
    result = await try_settings(operator, sides.source)
    assert result["code"] is None
    assert result["reachable"] is True
    assert result["latency_ms"] > 0
    assert result["version_number"] >= 140000
    assert result["role"]["name"] == sides.source["user"]
    assert result["role"]["replication"] is True
    assert result["role"]["superuser"] is False


async def test_wrong_password(operator: httpx.AsyncClient, sides: Sides) -> None:
    result = await try_settings(operator, sides.source, password="wrong")
    assert (result["code"], result["reachable"]) == ("authentication_failed", True)
    assert "password" in result["cure"]


async def test_the_account_of_the_service_adds_nothing(
    operator: httpx.AsyncClient, sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its password file knows the password, its environment another server."""
    passwords = tmp_path / ".pgpass"
    passwords.write_text(f"*:*:*:*:{sides.source['password']}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    result = await try_settings(operator, sides.source, password="")
    assert (result["code"], result["reachable"]) == ("authentication_failed", True)
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.9")
    forget_libpq_environment()
    assert [name for name in os.environ if name.startswith("PG")] == []
    assert (await try_settings(operator, sides.source))["code"] is None


async def test_no_line_in_pg_hba(operator: httpx.AsyncClient, sides: Sides) -> None:
    sides.cluster.execute("DROP ROLE IF EXISTS outsider", "CREATE ROLE outsider LOGIN PASSWORD 'p'")
    result = await try_settings(operator, sides.source, user="outsider")
    assert result["code"] == "authentication_failed"
    assert "pg_hba.conf" in result["cure"]


async def test_unreachable_host_and_port(operator: httpx.AsyncClient, sides: Sides) -> None:
    refused = await try_settings(operator, sides.source, port=free_port())
    assert (refused["code"], refused["reachable"]) == ("database_unreachable", False)
    assert "listen_addresses" in refused["cure"]
    unknown = await try_settings(operator, sides.source, host="no-such-host.invalid")
    assert unknown["code"] == "database_unreachable"
    assert "host name" in unknown["cure"]


async def test_unknown_database(operator: httpx.AsyncClient, sides: Sides) -> None:
    result = await try_settings(operator, sides.source, dbname='no "such" one')
    assert result["code"] == "unknown_database"
    assert result["sql"] == 'CREATE DATABASE "no ""such"" one"'


async def test_tls_that_the_server_has_not(operator: httpx.AsyncClient, sides: Sides) -> None:
    result = await try_settings(operator, sides.source, sslmode="require")
    assert result["code"] == "tls_failed"
    assert "prefer" in result["cure"]


async def test_stored_password_is_for_the_stored_server_only(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    stored = {"password": "", "database_id": registered["source"]}
    assert (await try_settings(operator, sides.source, **stored))["code"] is None
    elsewhere = {key: value for key, value in {**sides.source, **stored, "host": "localhost"}.items() if key != "name"}
    answer = await operator.post(f"{PATH}:test", json=elsewhere)
    assert (answer.status_code, answer.json()["code"]) == (422, "password_required")


async def test_test_of_a_registered_database_is_remembered(
    operator: httpx.AsyncClient, registered: dict[str, str]
) -> None:
    path = f"{PATH}/{registered['source']}"
    version = (await operator.post(f"{path}/test")).json()["version"]
    database = (await operator.get(path)).json()
    assert database["version"] == version
    assert database["tested_at"] is not None
    headers = {"If-Match": "*"}
    renamed = (await operator.patch(path, json={"name": "another"}, headers=headers)).json()
    assert renamed["tested_at"] == database["tested_at"]
    changed = (await operator.patch(path, json={"sslmode": "allow", "password": "x"}, headers=headers)).json()
    assert (changed["tested_at"], changed["test_code"]) == (None, None), "that was another connection"


async def test_tables(operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides) -> None:
    sides.on_source(
        'CREATE SCHEMA "Größe"',
        'CREATE TABLE "Größe"."Tabelle 1" (a int, b int, PRIMARY KEY (b, a))',
        "CREATE TABLE notes (body text)",
        "CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY)",
        "CREATE TABLE measured (at date, value int, PRIMARY KEY (at)) PARTITION BY RANGE (at)",
        "CREATE TABLE measured_2026 PARTITION OF measured FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
        "CREATE TABLE full_identity (body text)",
        "ALTER TABLE full_identity REPLICA IDENTITY FULL",
    )
    items = (await operator.get(f"{PATH}/{registered['source']}/tables")).json()["items"]
    tables = {f"{item['schema']}.{item['table']}": item for item in items}
    assert tables["Größe.Tabelle 1"]["key_columns"] == ["b", "a"]
    assert tables["public.orders"]["rows_estimated"] == 100
    assert tables["public.orders"]["bytes"] > 0
    assert tables["public.orders"]["replicable"] is True
    assert "primary key" in tables["public.notes"]["unsupported"][0]
    assert tables["public.scratch"]["kind"] == "unlogged"
    assert tables["public.measured"]["kind"] == "partitioned"
    assert tables["public.measured"]["bytes"] >= tables["public.measured_2026"]["bytes"] > 0
    assert tables["public.measured_2026"]["replicable"] is False
    assert tables["public.full_identity"]["replicable"] is True
    assert tables["public.full_identity"]["warnings"]


async def test_columns_of_a_table(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    sides.on_source(
        'CREATE SCHEMA "Größe"',
        'CREATE TABLE "Größe"."Tabelle 1"'
        ' (b numeric(9, 2), gone int, "A" text, one int GENERATED ALWAYS AS (1) STORED)',
        'ALTER TABLE "Größe"."Tabelle 1" DROP COLUMN gone',
    )
    path = f"{PATH}/{registered['source']}/columns"
    answer = await viewer.get(path, params={"schema": "Größe", "table": "Tabelle 1"})
    assert answer.json() == {"columns": [{"name": "b", "type": "numeric(9,2)"}, {"name": "A", "type": "text"}]}
    missing = await operator.get(path, params={"schema": "Größe", "table": "tabelle 1"})
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "Größe.tabelle 1" in missing.json()["detail"]


async def test_tables_come_in_parts_and_can_be_searched(
    operator: httpx.AsyncClient, registered: dict[str, str]
) -> None:
    path = f"{PATH}/{registered['source']}/tables"
    first = (await operator.get(path, params={"limit": 1})).json()
    second = (await operator.get(path, params={"limit": 1, "cursor": first["next_cursor"]})).json()
    assert [page["items"][0]["table"] for page in (first, second)] == ["customers", "orders"]
    assert second["next_cursor"] is None
    found = (await operator.get(path, params={"search": "ORD"})).json()["items"]
    assert [item["table"] for item in found] == ["orders"]


@pytest.mark.parametrize("path", ["tables", "columns?schema=public&table=orders", "preflight?role=source"])
async def test_lost_database_is_a_problem_or_a_failed_check(
    operator: httpx.AsyncClient, sides: Sides, path: str
) -> None:
    made = (await operator.post(PATH, json={**sides.source, "port": free_port()})).json()
    answer = await operator.get(f"{PATH}/{made['id']}/{path}")
    if not path.startswith("preflight"):
        assert (answer.status_code, answer.json()["code"]) == (422, "database_unreachable")
    else:
        assert [(check["id"], check["status"]) for check in answer.json()["checks"]] == [("connection", "failed")]
