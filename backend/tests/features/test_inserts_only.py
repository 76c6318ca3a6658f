"""Tables whose updates and deletes are given up: what the engine is told, and how somebody changes their mind."""

from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.features.test_table_troubles import ORDERS, trouble, until
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401

NOTES = {"schema": "public", "table": "notes"}
ALL = {"include": [{"schema": "public", "table": "*"}], "exclude": []}
GIVEN_UP = {**ALL, "inserts_only": [NOTES]}


def make_notes(sides: Sides) -> None:
    sides.on_source("CREATE TABLE notes (body text)", f"ALTER TABLE notes OWNER TO {sides.source['user']}")


def of_tables(stream: dict[str, Any]) -> dict[str, bool]:
    return {table["table"]: table["inserts_only"] for table in stream["tables"]}


async def test_the_consent_goes_to_the_engine(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    sides: Sides,
    collector: Any,  # noqa: F811
) -> None:
    make_notes(sides)
    refused = await operator.post(STREAMS, json=body_of(registered))
    assert refused.status_code == 409 and [error["code"] for error in refused.json()["errors"]] == ["table_keys"]
    stream = await created(operator, registered, rules=GIVEN_UP)
    assert stream["rules"] == {**GIVEN_UP, "row_rules": [], "transformations": [], "renames": []}
    assert of_tables(stream) == {"customers": False, "notes": True, "orders": False}

    async def sent() -> bool:
        tables = engine.desired["streams"][0]["tables"] if engine.desired.get("streams") else []
        return {"schema": "public", "table": "notes", "inserts_only": True} in tables and {
            "schema": "public", "table": "orders"} in tables  # fmt: skip

    await eventually(sent)


async def test_a_running_stream_needs_its_second_publication(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    stream = await created(operator, registered)
    path, headers = f"{STREAMS}/{stream['id']}", {"If-Match": "*"}
    make_notes(sides)
    refused = await operator.patch(path, json={"rules": GIVEN_UP}, headers=headers)
    assert [error["code"] for error in refused.json()["errors"]] == ["inserts_publication"]
    assert "create it again" in refused.json()["errors"][0]["cure"]
    sides.on_source(f"CREATE PUBLICATION thalweg_{stream['id']}_inserts")
    try:
        changed = await operator.patch(path, json={"rules": GIVEN_UP}, headers=headers)
        assert changed.status_code == 200, changed.text
        assert of_tables(changed.json())["notes"]

        # Updates again: what was given up meanwhile needs another copy, and somebody's word.
        sides.on_source("ALTER TABLE notes REPLICA IDENTITY FULL")
        asked = await operator.patch(path, json={"rules": ALL}, headers=headers)
        (error,) = asked.json()["errors"]
        assert (asked.status_code, error["code"]) == (409, "updates_again") and "copy" in error["message"]
        (check,) = asked.json()["checks"]
        assert (check["id"], check["status"], check["items"]) == ("updates_again", "consent", ["public.notes"])
        given = await operator.patch(path, json={"rules": ALL, "accept": [check["consent"]]}, headers=headers)
        assert given.status_code == 200, given.text
        assert of_tables(given.json()) == {"customers": False, "notes": False, "orders": False}
    finally:
        sides.on_source(f"DROP PUBLICATION thalweg_{stream['id']}_inserts")


async def test_a_rename_keeps_the_consent(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    called = {"schema": "sales", "table": "purchases"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    path = f"{STREAMS}/{(await created(operator, registered, rules={**ALL, 'inserts_only': [ORDERS]}))['id']}"
    await until(operator, path, "RENAMED")
    followed = (await operator.post(f"{path}/tables:follow", json=ORDERS)).json()
    assert followed["rules"]["inserts_only"] == [called]
    assert of_tables(followed) == {"customers": False, "purchases": True}
