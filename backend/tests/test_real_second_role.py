"""A second stream into a database whose bookkeeping belongs to the role of the first: what the preflight says to run is
all that it takes."""

from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import of, same_rows, stream, thalwegd  # noqa: F401

NOTES = "SELECT id, body FROM notes ORDER BY id"


async def test_a_second_role_shares_the_bookkeeping_once_the_cure_is_run(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    there = sides.destination
    second = f"{there['user']}_second"
    sides.on_destination(
        f"CREATE ROLE {second} LOGIN PASSWORD 'secret of second'",
        f"GRANT SET ON PARAMETER session_replication_role TO {second}",
        f"GRANT CREATE ON DATABASE {there['dbname']} TO {second}", f"GRANT CREATE ON SCHEMA public TO {second}",
    )  # fmt: skip
    sides.on_source(
        "CREATE TABLE notes (id bigint PRIMARY KEY, body text)", "INSERT INTO notes VALUES (1, 'copied')",
        f"ALTER TABLE notes OWNER TO {sides.source['user']}",
    )  # fmt: skip
    body = {**there, "name": "by the second role", "user": second, "password": "secret of second"}
    made = (await admin.post("/api/v1/databases", json=body)).json()
    asked = {
        "source_id": registered["source"], "destinations": [{"database_id": made["id"]}],
        "rules": {"include": [{"schema": "public", "table": "notes"}]},
    }  # fmt: skip

    async def refused() -> dict[str, str | None]:
        answer = await operator.post("/api/v1/preflights", json=asked)
        assert answer.status_code == 200, answer.text
        return {check["id"]: check["sql"] for check in answer.json()["checks"] if check["status"] == "failed"}

    cure = (await refused())["bookkeeping_schema"]
    assert cure is not None and cure.startswith("GRANT ")
    assert set(await refused()) == {"bookkeeping_schema"}
    assert (await operator.post(STREAMS, json={"name": "notes", **asked})).status_code == 409
    sides.on_destination(cure)
    assert await refused() == {}
    answer = await operator.post(STREAMS, json={"name": "notes", **asked})
    assert answer.status_code == 202, answer.text
    path = f"{STREAMS}/{answer.json()['stream_id']}"
    await wait_for(operator, path, phase="REPLICATING")
    sides.on_source("INSERT INTO notes VALUES (2, 'captured')", "INSERT INTO orders VALUES (700, 'of the first', 1)")

    async def arrived() -> bool:
        return of(sides, there["dbname"], NOTES) == [(1, "copied"), (2, "captured")]

    await eventually(arrived)
    await same_rows(sides)
    deleted = (await operator.delete(path)).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{deleted}", state="succeeded")
    sides.on_source("INSERT INTO orders VALUES (701, 'after the second', 1)")
    await same_rows(sides)
    sides.on_destination(f"DROP OWNED BY {second} CASCADE")
    sides.cluster.execute(f"DROP OWNED BY {second} CASCADE", f"DROP ROLE {second}")
