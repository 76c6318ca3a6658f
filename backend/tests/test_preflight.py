"""Preflight: each check that fails names its cure, and the cure as SQL works."""

from collections.abc import Generator
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.support.servers import Cluster, start_cluster

ALL = {"include": [{"schema": "public", "table": "*"}]}


async def checks_of(client: httpx.AsyncClient, ids: dict[str, str], **more: Any) -> dict[str, dict[str, Any]]:
    body = {"source_id": ids["source"], "destinations": [{"database_id": ids["destination"]}], "rules": ALL, **more}
    answer = await client.post("/api/v1/preflights", json=body)
    assert answer.status_code == 200, answer.text
    checks = answer.json()["checks"]
    assert answer.json()["ready"] == all(check["status"] != "failed" for check in checks)
    for check in checks:
        assert check["status"] == "ok" or check["cure"], check
    return {f"{check['side']}:{check['id']}": check for check in checks}


def failed(checks: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, check in checks.items() if check["status"] == "failed"}


async def test_ready(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    checks = await checks_of(operator, registered)
    assert failed(checks) == set()
    assert "2 tables will be created" in checks["destination:schema_create"]["detail"]


async def test_how_large_transactions_come(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    wanted = (await checks_of(operator, registered))["source:output_plugin"]["detail"]
    whole = (await checks_of(operator, registered, parameters={"source_plugin": "pgoutput"}))["source:output_plugin"]
    assert "large transactions after their commit only" in whole["detail"]
    is_offered = wanted.startswith("thalweg_output")
    assert ("large ones while they run" if is_offered else "large transactions after their commit only") in wanted


async def test_missing_rights_at_the_source_and_their_cures(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    reader = sides.source["user"]
    sides.on_source(
        f"ALTER ROLE {reader} NOREPLICATION",
        f"ALTER DATABASE {sides.source['dbname']} OWNER TO postgres",
        "ALTER TABLE orders OWNER TO postgres",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE notes (body text)",
        f"ALTER TABLE notes OWNER TO {reader}",
    )
    checks = await checks_of(operator, registered)
    assert failed(checks) == {
        "source:replication_attribute",
        "source:create_publication",
        "source:table_ownership",
        "source:table_select",
        "source:row_security",
        "source:table_keys",
    }
    for name in failed(checks):
        sides.on_source(checks[name]["sql"])
    assert failed(await checks_of(operator, registered)) == set()
    sides.on_source(f"REVOKE postgres FROM {reader}")


async def test_unsupported_tables(operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides) -> None:
    sides.on_source(
        "CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY)", f"ALTER TABLE scratch OWNER TO {sides.source['user']}"
    )
    checks = await checks_of(operator, registered)
    assert failed(checks) == {"source:unsupported_tables"}
    sides.on_source(checks["source:unsupported_tables"]["sql"])
    assert failed(await checks_of(operator, registered)) == set()


async def test_what_is_not_replicated_is_said(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    sides.on_source("CREATE SEQUENCE numbers", "SELECT lo_create(0)")
    checks = await checks_of(operator, registered)
    assert checks["source:sequences"]["status"] == "warning"
    assert checks["source:large_objects"]["status"] == "warning"
    assert failed(checks) == set()


async def test_rules_that_choose_nothing(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    rules = {"include": [{"schema": "Public", "table": "*"}]}
    assert "source:tables" in failed(await checks_of(operator, registered, rules=rules))


async def test_missing_rights_at_the_destination_and_their_cures(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    writer = sides.destination["user"]
    sides.on_destination(
        f"ALTER DATABASE {sides.destination['dbname']} OWNER TO postgres",
        f"REVOKE SET ON PARAMETER session_replication_role FROM {writer}",
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text)",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC, pg_database_owner",
    )
    checks = await checks_of(operator, registered)
    assert failed(checks) == {
        "destination:create_schema",
        "destination:session_replication_role",
        "destination:schema_create",
        "destination:table_write",
    }
    for name in failed(checks):
        sides.on_destination(*checks[name]["sql"].splitlines())
    assert failed(await checks_of(operator, registered)) == set()


async def test_bookkeeping_of_another_role(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """The schema thalweg is there under the role of the stream that came first."""
    user = sides.destination["user"]
    first = f"{user}_first"
    sides.on_destination(f"CREATE ROLE {first}", f"CREATE SCHEMA thalweg AUTHORIZATION {first}")
    checks = await checks_of(operator, registered)
    assert failed(checks) == {"destination:bookkeeping_schema"}
    sides.on_destination(checks["destination:bookkeeping_schema"]["sql"])
    assert failed(await checks_of(operator, registered)) == set()
    sides.on_destination("DROP SCHEMA thalweg", f"DROP ROLE {first}")


async def test_existing_tables_that_do_not_fit(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    writer = sides.destination["user"]
    sides.on_destination(
        "CREATE TABLE orders (id bigint PRIMARY KEY, amount text, extra int NOT NULL)",
        f"ALTER TABLE orders OWNER TO {writer}",
    )
    check = (await checks_of(operator, registered))["destination:existing_tables"]
    assert check["status"] == "failed"
    for part in ("item is missing", "amount is text instead of numeric(12,2)", "extra is not in the source"):
        assert part in check["detail"]
    sides.on_destination("ALTER TABLE orders DROP COLUMN amount")
    check = (await checks_of(operator, registered))["destination:existing_tables"]
    sides.on_destination(*check["sql"].splitlines())
    assert failed(await checks_of(operator, registered)) == set()


async def test_tables_with_rows(operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides) -> None:
    sides.on_destination(
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text)",
        f"ALTER TABLE customers OWNER TO {sides.destination['user']}",
        "INSERT INTO customers VALUES (1, 'a')",
    )
    checks = await checks_of(operator, registered)
    assert failed(checks) == {"destination:empty_tables"}
    without_copy = await checks_of(operator, registered, parameters={"initial_copy": False})
    assert without_copy["destination:empty_tables"]["status"] == "warning"
    sides.on_destination(checks["destination:empty_tables"]["sql"])
    assert failed(await checks_of(operator, registered)) == set()


async def test_one_database_for_both_sides(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    same = {"source": registered["source"], "destination": registered["source"]}
    assert "destination:different_databases" in failed(await checks_of(operator, same))


async def test_lost_destination_does_not_hide_the_source(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    sides.on_source("CREATE TABLE notes (body text)")
    path = f"/api/v1/databases/{registered['destination']}"
    await operator.patch(path, json={"password": "wrong"}, headers={"If-Match": "*"})
    assert {"source:table_keys", "destination:connection"} <= failed(await checks_of(operator, registered))


@pytest.fixture(scope="module")
def poor_cluster() -> Generator[Cluster, None, None]:
    started = start_cluster(wal_level="replica", max_replication_slots=0, max_wal_senders=0)
    yield started
    started.stop()


async def test_server_that_is_not_set_up_for_logical_wal(operator: httpx.AsyncClient, poor_cluster: Cluster) -> None:
    body = {"name": "poor", "host": "127.0.0.1", "port": poor_cluster.port, "dbname": "postgres", "user": "postgres"}
    made = (await operator.post("/api/v1/databases", json=body)).json()
    answer = await operator.get(f"/api/v1/databases/{made['id']}/preflight", params={"role": "source"})
    checks = {check["id"]: check for check in answer.json()["checks"]}
    for name, sql in (
        ("wal_level", "ALTER SYSTEM SET wal_level = 'logical'"),
        ("replication_slots", "ALTER SYSTEM SET max_replication_slots = 10"),
        ("wal_senders", "ALTER SYSTEM SET max_wal_senders = 10"),
    ):
        assert (checks[name]["status"], checks[name]["sql"]) == ("failed", sql)
        poor_cluster.execute(sql)
    assert answer.json()["ready"] is False


async def test_one_database_alone(operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides) -> None:
    """No tables are chosen yet: what is wrong with some only warns."""
    sides.on_source("CREATE TABLE notes (body text)")
    path = f"/api/v1/databases/{registered['source']}/preflight"
    answer = (await operator.get(path, params={"role": "source"})).json()
    assert answer["ready"] is True
    assert {check["id"] for check in answer["checks"] if check["status"] == "warning"} >= {"table_keys"}
    path = f"/api/v1/databases/{registered['destination']}/preflight"
    assert (await operator.get(path, params={"role": "destination"})).json()["ready"] is True


async def test_preview_says_what_the_rules_choose(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    sides.on_source(
        "CREATE TABLE measured (at date PRIMARY KEY) PARTITION BY RANGE (at)",
        "CREATE TABLE measured_2026 PARTITION OF measured FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
    )
    rules = {
        "include": [{"schema": "public", "table": "*"}, {"schema": "public", "table": "nothing_*"}],
        "exclude": [{"schema": "*", "table": "cust?mers"}],
    }
    body = {"source_id": registered["source"], "rules": rules}
    preview = (await operator.post("/api/v1/streams:preview-tables", json=body)).json()
    assert [table["table"] for table in preview["tables"]] == ["measured", "orders"]
    assert preview["unmatched"] == ["public.nothing_*"]
    assert preview["replicable"] == 2
    assert preview["rows_estimated"] == 100
