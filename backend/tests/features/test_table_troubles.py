"""Changes of a stream's tables at the source: shown, never called healthy, and resolved."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from thalweg.features.streams.parameters import load_parameters, with_table
from thalweg.features.streams.schemas import ParameterType
from thalweg.kernel.settings import PACKAGE
from thalweg.workers import progress

ORDERS = {"schema": "public", "table": "orders"}
NAMED = {"include": [{"schema": "public", "table": "customers"}, ORDERS], "exclude": []}


def trouble(kind: str, *resolutions: str, **changes: Any) -> dict[str, Any]:
    return {
        "kind": kind, "reason": f"It is {kind.lower()}.", "cure": "Mend it.", "since": "2026-11-21T00:00:00Z",
        "renamed_to": None, "resolutions": list(resolutions), **changes,
    }  # fmt: skip


async def until(client: httpx.AsyncClient, path: str, kind: str | None) -> dict[str, Any]:
    """Until the table of orders has that trouble."""

    async def check() -> dict[str, Any] | None:
        stream = dict((await client.get(path)).json())
        found = next((table["trouble"] for table in stream["tables"] if table["table"] == "orders"), None)
        return stream if (found["kind"] if found else None) == kind and stream["status"] == "ENABLED" else None

    return dict(await eventually(check))


async def test_the_cures_sql_is_the_engines(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    """Nobody takes it out of the words: they may name other statements, too."""
    sql = 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;'
    words = f"At the source, run {sql} Or add a primary key."
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    for kind, told, shown in (
        ("UNIDENTIFIED", {"cure_sql": f"{sql}\n{sql}"}, f"{sql}\n{sql}"),
        ("PARTITIONS CHANGED", {"cure_sql": ""}, None),
        ("RENAMED", {}, None),  # an older engine
    ):
        engine.troubles["orders"] = {"trouble": trouble(kind, cure=words, **told)}
        found = {table["table"]: table["trouble"] for table in (await until(operator, path, kind))["tables"]}
        assert (found["orders"]["cure"], found["orders"]["sql"]) == (words, shown)
        assert "cure_sql" not in found["orders"]


async def test_a_stopped_table_is_never_healthy_until_it_is_copied(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    engine.troubles["orders"] = {"state": "STOPPED", "trouble": trouble("REPLACED", "copy")}
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    stream = await until(operator, path, "REPLACED")
    assert stream["health"] == {"level": "error", "reason": "It is replaced. Mend it."}
    assert [table["state"] for table in stream["tables"]] == ["REPLICATING", "STOPPED"]

    async def alerted() -> str | None:
        items = (await operator.get("/api/v1/alerts", params={"rule": "table_trouble", "state": "firing"})).json()[
            "items"
        ]
        return str(items[0]["message"]) if items else None

    assert (await eventually(alerted)).endswith("It is replaced. Mend it.")
    at = f"{path}/destinations/{stream['destinations'][0]['id']}"
    engine.copy_finished = False
    for reason in ("two\nlines", "    ", "un\u200bseen"):
        unclear = await operator.post(f"{at}/tables:copy", json={**ORDERS, "reason": reason})
        assert unclear.status_code == 422 and engine.resolved == []
    asked = await operator.post(f"{at}/tables:copy", json={**ORDERS, "reason": "its file was damaged"})
    assert asked.status_code == 202
    assert engine.resolved == [("copy", ORDERS)]
    running = (await operator.get(asked.headers["location"])).json()
    assert (running["kind"], running["state"], running["target"]["table"]) == ("table.copy", "running", "public.orders")
    engine.copy_finished, engine.copied_at = True, "2026-11-21T00:00:09.000000Z"
    engine.discarded["orders"] = 3
    await wait_for(operator, asked.headers["location"], state="succeeded")
    assert (await until(operator, path, None))["health"]["level"] == "ok"
    # The audit log has the transactions that it made obsolete, with the reason.
    entries = (await admin.get("/api/v1/audit")).json()["items"]
    (entry,) = (entry for entry in entries if entry["action"] == "stream_errors_superseded")
    assert (entry["actor_name"], entry["target_id"]) == ("engine", stream["id"])
    told = {"reason": "copied again at 0/5A3C1F8", "transactions": 3, "schema": "public", "table": "orders"}
    assert told.items() <= entry["after"].items()
    (copied,) = (entry for entry in entries if entry["action"] == "stream_tables_copy")
    assert copied["after"] == {"destination_id": "warehouse", **ORDERS, "reason": "its file was damaged"}
    assert "3 parked transactions discarded: public.orders was copied again" in entry["sentence"]


async def test_a_copy_waits_while_another_tables_trouble_stops_the_stream(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(progress, "RESTARTS_WITHIN", timedelta(0))
    engine.troubles["orders"] = {"state": "STOPPED", "trouble": trouble("REPLACED", "copy")}
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    at = f"{path}/destinations/{(await until(operator, path, 'REPLACED'))['destinations'][0]['id']}"
    engine.copy_finished = False
    asked = await operator.post(f"{at}/tables:copy", json=ORDERS)
    error = example("status")["streams"][1]["error"]
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", {**error, "table": "public.customers"}

    async def told() -> bool:
        operation = (await operator.get(asked.headers["location"])).json()
        assert operation["state"] == "running", operation
        return error["cure"] in operation["waiting_for"]

    await eventually(told)
    engine.status, engine.phase, engine.error = "ENABLED", "REPLICATING", None
    engine.copy_finished, engine.copied_at = True, "2026-11-21T00:00:09.000000Z"
    await wait_for(operator, asked.headers["location"], state="succeeded")
    # The table's own trouble ends it.
    engine.copy_finished = False
    engine.troubles["orders"] = {"state": "STOPPED", "trouble": trouble("REPLACED", "copy")}
    asked = await operator.post(f"{at}/tables:copy", json=ORDERS)
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", {**error, "table": '"public"."orders"'}
    await wait_for(operator, asked.headers["location"], state="failed")


@pytest.mark.parametrize("stopped", ["stream", "destination"])
async def test_a_copy_waits_for_what_somebody_has_stopped(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Any, stopped: str,  # noqa: F811
) -> None:  # fmt: skip
    """And succeeds after the start, which takes nothing's place."""
    replaced = {"state": "STOPPED", "trouble": trouble("REPLACED", "copy")}
    engine.troubles["orders"] = replaced
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    stream = await until(operator, path, "REPLACED")
    at = f"{path}/destinations/{stream['destinations'][0]['id']}"
    part = {"stream": path, "destination": at}[stopped]
    engine.copy_finished = False
    asked = await operator.post(f"{at}/tables:copy", json=ORDERS)
    assert (await operator.post(f"{part}:stop")).status_code == 202

    async def told() -> bool:
        operation = (await operator.get(asked.headers["location"])).json()
        assert operation["state"] == "running", operation
        return (
            f"The {stopped} " in operation["waiting_for"] and "which is stopped. Start it" in operation["waiting_for"]
        )

    await eventually(told)
    assert (await operator.post(f"{part}:start")).status_code == 202
    engine.copy_finished, engine.copied_at = True, "2026-11-21T00:00:09.000000Z"
    ended = await wait_for(operator, asked.headers["location"], state="succeeded")
    assert ended["error"] is None
    # A removal does end it.
    engine.copy_finished, engine.troubles["orders"] = False, replaced
    asked = await operator.post(f"{at}/tables:copy", json=ORDERS)
    assert (await operator.delete(path)).status_code == 202
    await wait_for(operator, asked.headers["location"], state="failed")


async def test_the_copy_of_a_table_that_is_taken_out_meanwhile_ends(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    engine.troubles["orders"] = {"state": "STOPPED", "trouble": trouble("REPLACED", "copy")}
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    stream = await until(operator, path, "REPLACED")
    at = f"{path}/destinations/{stream['destinations'][0]['id']}"
    engine.copy_finished = False
    asked = await operator.post(f"{at}/tables:copy", json=ORDERS)
    others = {"rules": {"include": [{"schema": "public", "table": "customers"}]}}
    changed = await operator.patch(path, json=others, headers={"If-Match": "*"})
    assert changed.status_code == 200, changed.text
    ended = await wait_for(operator, asked.headers["location"], state="failed")
    assert (ended["error"]["code"], ended["error"]["message"]) == (
        "superseded", "The stream does not have public.orders any longer.",
    )  # fmt: skip


async def test_what_a_copy_has_made_obsolete_is_noted_once_however_its_operation_ended(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine.troubles["orders"] = {"state": "STOPPED", "trouble": trouble("REPLACED", "copy")}
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    at = f"{path}/destinations/{(await until(operator, path, 'REPLACED'))['destinations'][0]['id']}"
    engine.copy_finished = False
    monkeypatch.setattr(progress, "RESTARTS_WITHIN", timedelta(0))
    asked = await operator.post(f"{at}/tables:copy", json=ORDERS)
    error = {**example("status")["streams"][1]["error"], "table": '"public"."orders"'}
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", error
    await wait_for(operator, asked.headers["location"], state="failed")
    engine.status, engine.phase, engine.error = "ENABLED", "REPLICATING", None

    async def noted(counts: list[int]) -> bool:
        entries = (await admin.get("/api/v1/audit", params={"target_id": path.rpartition("/")[2]})).json()["items"]
        found = [entry["after"]["transactions"] for entry in entries if entry["action"] == "stream_errors_superseded"]
        assert len(found) <= len(counts)
        return found == counts

    engine.discarded["orders"] = 3
    await eventually(lambda: noted([3]))
    engine.discarded.clear()  # An engine that starts has not read it yet.
    await asyncio.sleep(0.3)
    engine.discarded["orders"] = 5
    await eventually(lambda: noted([2, 3]))


async def test_partitions_are_accepted_or_refused_by_the_engine(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    at = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/tables:accept"
    refused = await operator.post(at, json=ORDERS)
    assert (refused.status_code, refused.json()["detail"]) == (409, "It has no changed partitions.")
    engine.troubles["orders"] = {"trouble": trouble("PARTITIONS CHANGED", "copy", "accept")}
    assert (await operator.post(at, json=ORDERS)).status_code == 202
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    told = [entry["after"].get("refused") for entry in entries if entry["action"] == "stream_tables_accept"]
    assert told == [None, "resolution_refused"], "one entry for one request"


async def test_a_rename_is_followed_in_rules_and_tables(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    called = {"schema": "sales", "table": "purchases"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    path = f"{STREAMS}/{(await created(operator, registered, rules=NAMED))['id']}"
    assert (await until(operator, path, "RENAMED"))["health"]["level"] == "warning"
    refused = await operator.post(f"{path}/tables:remove", json=ORDERS)
    assert (refused.status_code, "can be resolved this way" in refused.json()["detail"]) == (409, True)
    followed = (await operator.post(f"{path}/tables:follow", json=ORDERS)).json()
    assert followed["rules"]["include"] == [{"schema": "public", "table": "customers"}, called]
    assert [table["table"] for table in followed["tables"]] == ["customers", "purchases"]

    async def sent() -> bool:
        return called in engine.desired["streams"][0]["tables"]

    await eventually(sent)
    assert (await operator.post(f"{path}/tables:follow", json=ORDERS)).status_code == 409  # it has been done


@pytest.mark.parametrize(
    ("include", "name", "after"),
    [
        # A pattern that takes the new name needs no rule beside it, which the table's next name would leave dead.
        (["public.*"], "purchases", ["public.*"]),
        # One that took nothing but the old name goes.
        (["public.c*", "public.order?"], "purchases", ["public.c*", "public.purchases"]),
        (["public.customers", "public.orders", "public.purchases"], "purchases",
         ["public.customers", "public.purchases"]),
    ],
)  # fmt: skip
async def test_what_is_followed_leaves_no_rule_without_a_table(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Any,  # noqa: F811
    include: list[str], name: str, after: list[str],
) -> None:  # fmt: skip
    engine.troubles["orders"] = {
        "trouble": trouble("RENAMED", "follow", renamed_to={"schema": "public", "table": name})
    }
    rules = {"include": [dict(zip(("schema", "table"), one.split("."), strict=True)) for one in include]}
    path = f"{STREAMS}/{(await created(operator, registered, rules=rules))['id']}"
    await until(operator, path, "RENAMED")
    followed = (await operator.post(f"{path}/tables:follow", json=ORDERS)).json()
    assert [f"{rule['schema']}.{rule['table']}" for rule in followed["rules"]["include"]] == after


CUSTOMERS = {"schema": "public", "table": "customers"}
NOTE = {"when": "after", "statement": "INSERT INTO audit.orders VALUES (:new.id)"}


def lists_of(*tables: dict[str, str]) -> dict[str, Any]:
    """Every parameter whose entries name tables, with an entry of each, and what every table has."""
    count = {"when": "precommit", "statement": "SELECT 1"}
    return {
        "statement_handlers": [*({**NOTE, **table} for table in tables), count],
        "conflict_handlers": [
            *({"kind": "insert_exists", "action": "discard", **table} for table in tables),
            {"kind": "insert_exists", "action": "error"},
        ],
        "conflict_detection": [*({**table, "columns": ["id"]} for table in tables)],
        "error_policies": [*({"error": "23", "action": "park", **table} for table in tables), {"action": "stop"}],
    }  # fmt: skip


def test_every_list_of_the_contract_takes_a_tables_new_name() -> None:
    definitions = load_parameters(PACKAGE / "contract")
    plain = {ParameterType.INTEGER, ParameterType.BOOLEAN, ParameterType.ENUM, ParameterType.TEXT}
    assert lists_of().keys() == {name for name, definition in definitions.items() if definition.type not in plain}
    before = {**lists_of(CUSTOMERS, ORDERS), "parallelism": 2}
    called, own = {"schema": "sales", "table": "purchases"}, ("public", "orders")
    after = with_table(definitions, before, own, ("sales", "purchases"))
    assert after == {**lists_of(CUSTOMERS, called), "parallelism": 2}
    assert with_table(definitions, before, own, None) == {**lists_of(CUSTOMERS), "parallelism": 2}
    # Two entries of one table would be refused; without one of its own, it gets what its name has.
    assert with_table(definitions, lists_of(called, ORDERS), own, ("sales", "purchases")) == lists_of(called)
    assert with_table(definitions, lists_of(called), own, ("sales", "purchases")) == lists_of(called)


@pytest.mark.parametrize("how", ["follow", "remove"])
async def test_handlers_and_policies_go_along_with_their_table(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    collector: Any, sides: Sides, how: str,  # noqa: F811
) -> None:  # fmt: skip
    user = sides.destination["user"]
    sides.on_destination(
        "CREATE SCHEMA audit", "CREATE TABLE audit.orders (id bigint)",
        f"GRANT USAGE ON SCHEMA audit TO {user}", f"GRANT INSERT ON audit.orders TO {user}",
    )  # fmt: skip
    called = {"schema": "sales", "table": "purchases"}
    engine.troubles["orders"] = {
        "trouble": trouble("RENAMED" if how == "follow" else "DROPPED", how, renamed_to=called)
    }
    before = lists_of(CUSTOMERS, ORDERS)
    body = body_of(registered, rules=NAMED, parameters=before)
    body["destinations"][0]["parameters"] = {"statement_handlers": [{**NOTE, **ORDERS}]}
    answer = await admin.post(STREAMS, json=body)
    assert answer.status_code == 202, answer.text
    path = f"{STREAMS}/{answer.json()['stream_id']}"
    await until(operator, path, engine.troubles["orders"]["trouble"]["kind"])
    changed = (await operator.post(f"{path}/tables:{how}", json=ORDERS)).json()
    after = [called] if how == "follow" else []
    assert changed["parameters"] == lists_of(CUSTOMERS, *after)
    of_destination = [{**NOTE, **table} for table in after]
    assert changed["destinations"][0]["parameters"] == {"statement_handlers": of_destination}

    async def sent() -> bool:
        parameters = engine.desired["streams"][0]["destinations"][0]["parameters"]
        return bool(parameters["statement_handlers"] == of_destination)

    await eventually(sent)


@pytest.mark.parametrize("schema", ["thalweg", "pg_temp", "information_schema"])
async def test_a_table_is_not_followed_into_a_reserved_schema(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Any, schema: str,  # noqa: F811
) -> None:  # fmt: skip
    called = {"schema": schema, "table": "orders"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    path = f"{STREAMS}/{(await created(operator, registered, rules=NAMED))['id']}"
    await until(operator, path, "RENAMED")
    refused = await operator.post(f"{path}/tables:follow", json=ORDERS)
    assert (refused.status_code, refused.json()["detail"]) == (
        409, f"{schema} is a schema of PostgreSQL or of Thalweg: nothing is replicated there.",
    )  # fmt: skip
    assert [table["table"] for table in (await operator.get(path)).json()["tables"]] == ["customers", "orders"]


async def test_a_dropped_table_is_taken_out_unless_it_is_the_last(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    engine.troubles["orders"] = {"trouble": trouble("DROPPED", "remove")}
    path = f"{STREAMS}/{(await created(operator, registered, rules=NAMED))['id']}"
    await until(operator, path, "DROPPED")
    changed = (await operator.post(f"{path}/tables:remove", json=ORDERS)).json()
    assert [table["table"] for table in changed["tables"]] == ["customers"]
    assert changed["rules"]["include"] == [{"schema": "public", "table": "customers"}]
    engine.troubles["customers"] = {"trouble": trouble("DROPPED", "remove")}
    customers = {"schema": "public", "table": "customers"}

    async def refused() -> str | None:
        detail = str((await operator.post(f"{path}/tables:remove", json=customers)).json()["detail"])
        return detail if "only table" in detail else None

    assert await eventually(refused)


async def test_viewers_resolve_nothing(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    at = f"{path}/destinations/{stream['destinations'][0]['id']}"
    for url in (f"{path}/tables:follow", f"{path}/tables:remove", f"{at}/tables:copy", f"{at}/tables:accept"):
        assert (await viewer.post(url, json=ORDERS)).status_code == 403
        assert (await operator.post(url, json={"table": "orders"})).status_code == 422
