"""The whole path with the real engine and real databases: REST and the command line on one end, rows on the other."""

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, text

from tests.conftest import Sides, Users
from tests.features.test_streams import STREAMS, created
from tests.support.real_engine import RealEngine, make_certificate
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_commands import shell, with_token  # noqa: F401
from thalweg.composition import EngineCaError, close_resources, make_resources
from thalweg.db.models import AbandonedStreamRow
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.kernel.context import Resources
from thalweg.kernel.settings import Settings

Running = Any


@pytest.fixture
def thalwegd(tmp_path: Path) -> Generator[RealEngine, None, None]:
    engine = RealEngine(tmp_path / "engine")
    engine.start()
    yield engine
    engine.stop()


async def enrol(
    admin: httpx.AsyncClient, engine: RealEngine, url: str | None = None, name: str = "real"
) -> httpx.Response:
    token = (await admin.post("/api/v1/engines/enrolments", json={})).json()["token"]
    body = {"token": token, "name": name, "url": url or engine.url, "control_token": engine.token}
    return await admin.post("/api/v1/engines/enrol", json=body)


@pytest.fixture
async def stream(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,
    collector: Running,  # noqa: F811
) -> AsyncGenerator[dict[str, Any], None]:
    """A stream that replicates; a failed conflict parks. Its slot is removed in the end: the databases must go."""
    assert (await enrol(admin, thalwegd)).status_code == 201
    made = await created(admin, registered, parameters={"disable_on_error": False, "parallelism": 2})
    yield await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    thalwegd.stop()

    async def slot_is_gone() -> bool:
        rows = of(sides, "postgres", f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot(made)}'")
        if rows == [(False,)]:
            of(sides, "postgres", f"SELECT pg_drop_replication_slot('{slot(made)}')")
        return not rows

    await eventually(slot_is_gone)


def slot(stream: dict[str, Any]) -> str:
    return f"thalweg_{stream['id']}"


def of(sides: Sides, dbname: str, query: str) -> list[tuple[Any, ...]]:
    return sides.cluster.rows(query, dbname)


def orders(sides: Sides, side: str) -> list[tuple[Any, ...]]:
    dbname = sides.source["dbname"] if side == "source" else sides.destination["dbname"]
    return of(sides, dbname, "SELECT id, item, amount FROM orders ORDER BY id")


async def same_rows(sides: Sides) -> None:
    async def same() -> bool:
        return orders(sides, "source") == orders(sides, "destination")

    await eventually(same)


async def parked(client: httpx.AsyncClient, path: str, count: int) -> list[dict[str, Any]]:
    async def listed() -> tuple[list[dict[str, Any]]] | None:
        errors = list((await client.get(f"{path}/destinations/warehouse/errors")).json()["errors"])
        return (errors,) if len(errors) == count else None

    return (await eventually(listed))[0]


# --- the error queue


async def test_an_execution_is_not_refused_where_only_one_behind_it_fails(
    operator: httpx.AsyncClient, stream: dict[str, Any], sides: Sides
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    sides.on_destination("INSERT INTO orders VALUES (600, 'in the way', 1), (601, 'in the way, too', 1)")
    sides.on_source("INSERT INTO orders VALUES (600, 'from the source', 2)")
    (error,) = await parked(operator, path, 1)
    sides.on_source(
        "WITH first AS (UPDATE orders SET amount = 5 WHERE id = 600) INSERT INTO orders VALUES (601, 'behind it', 3)"
    )
    await parked(operator, path, 2)
    sides.on_destination("DELETE FROM orders WHERE id = 600")
    answer = await operator.post(f"{path}/destinations/warehouse/errors/{error['id']}/execute")
    assert answer.status_code == 202, answer.text
    told = answer.json()
    assert (told["state"], told["executed"], told["failed_again"]) == ("FAILED", 1, 1)
    assert "601" in told["message"]
    assert [row for row in orders(sides, "destination") if row[0] == 600] == [(600, "from the source", 2)]
    await parked(operator, path, 1)


async def test_parked_transaction_is_looked_at_mended_and_executed(
    operator: httpx.AsyncClient, stream: dict[str, Any], sides: Sides
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    sides.on_destination("INSERT INTO orders VALUES (500, 'in the way', 1)")
    sides.on_source("INSERT INTO orders VALUES (500, 'from the source', 2), (501, 'with it', 3)")
    (error,) = await parked(operator, path, 1)
    assert (error["code"], error["sqlstate"], error["lcrs"]) == ("apply_conflict", "23505", 2)
    assert error["tables"] == ['"public"."orders"']
    assert "500" in error["message"]
    # The stream goes on: what has nothing to do with it flows, what depends on it waits behind it.
    sides.on_source("INSERT INTO orders VALUES (502, 'after it', 4)", "UPDATE orders SET amount = 5 WHERE id = 501")
    first, behind = await parked(operator, path, 2)
    assert (first["id"], behind["code"]) == (error["id"], "parked_behind")
    shown = await wait_for(operator, path, error_queue_transactions=2)
    # A slow machine may come here when the oldest is worth telling of.
    assert shown["health"]["level"] == "warning"
    assert re.match(r"2 transactions are parked in the error queue(, the oldest for .*)?\.$", shown["health"]["reason"])

    async def only_what_depends_waits() -> bool:
        return [row for row in orders(sides, "destination") if row[0] > 500] == [(502, "after it", 4)]

    await eventually(only_what_depends_waits)
    refused = await operator.post(f"{path}/destinations/warehouse/errors/{behind['id']}/execute")
    assert (refused.status_code, refused.json()["code"]) == (409, "execution_refused")
    again = await operator.post(f"{path}/destinations/warehouse/errors/{error['id']}/execute")
    assert again.status_code == 409, again.text
    assert "500" in again.json()["detail"]
    assert again.json()["cure"]
    assert len((await operator.get(f"{path}/destinations/warehouse/errors")).json()["errors"]) == 2

    sides.on_destination("DELETE FROM orders WHERE id = 500")
    assert (await operator.post(f"{path}/destinations/warehouse/errors/{error['id']}/execute")).status_code == 202
    await parked(operator, path, 0)
    await same_rows(sides)
    gone = await operator.post(f"{path}/destinations/warehouse/errors/{error['id']}/execute")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
    await wait_for(operator, path, error_queue_transactions=0)


async def test_parked_transaction_is_discarded(
    admin: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    stream: dict[str, Any],
    sides: Sides,
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    sides.on_destination("INSERT INTO orders VALUES (500, 'right as it is', 1)")
    sides.on_source("INSERT INTO orders VALUES (500, 'wrong', 2)")
    (error,) = await parked(operator, path, 1)
    error_path, why = f"{path}/destinations/warehouse/errors/{error['id']}", {"reason": "500 is right as it is"}
    assert (await viewer.delete(error_path, params=why)).status_code == 403
    assert (await operator.delete(error_path)).status_code == 422
    assert (await operator.delete(error_path, params=why)).status_code == 204
    await parked(operator, path, 0)
    assert (await operator.delete(error_path, params=why)).status_code == 404
    assert (500, "right as it is", 1) in orders(sides, "destination")
    sides.on_source("UPDATE orders SET item = 'agreed', amount = 9 WHERE id = 500")
    await same_rows(sides)
    audit = (await admin.get("/api/v1/audit")).json()["items"]
    (entry,) = [
        entry for entry in audit if entry["action"] == "stream_errors_delete" and "xid" in (entry["before"] or {})
    ]
    facts = {"destination_id": "warehouse", "error_id": error["id"], "finished": True, "changes_kept": 1}
    assert entry["after"] == {**facts, **why}
    assert (entry["before"]["xid"], entry["before"]["tables"]) == (error["xid"], error["tables"])
    assert "500" in entry["before"]["message"]


async def test_error_queue_from_the_command_line(
    shell: Any,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    stream: dict[str, Any],
    sides: Sides,
) -> None:
    run = with_token(shell, users)
    path = f"{STREAMS}/{stream['id']}"
    sides.on_destination("INSERT INTO orders VALUES (500, 'a', 1), (600, 'b', 1)")
    sides.on_source("INSERT INTO orders VALUES (500, 'x', 2)")
    await parked(operator, path, 1)  # the two do not depend on each other: either could be parked first
    sides.on_source("INSERT INTO orders VALUES (600, 'y', 2)")
    first, second = await parked(operator, path, 2)
    listed = await run("errors", stream["name"])
    assert '"public"."orders"' in listed.out
    assert "duplicate key" in listed.out
    shown = (await run("errors", stream["name"], "--show", str(first["id"]))).out
    assert "→ 1. INSERT public.orders" in shown
    change = ("--change", "1", "--reason", "600 is right as it is")
    assert (await run("errors", stream["name"], "--leave-out", str(second["id"]), *change)).code == 0
    again = await run("errors", stream["name"], "--leave-out", str(second["id"]), *change)
    assert "is decided about already. Left out. Reason: 600 is right" in again.err
    stale = ("--if-match", second["etag"])
    assert (
        "change 1 was left out at"
        in (await run("errors", stream["name"], "--restore", str(second["id"]), "--change", "1", *stale)).err
    )
    tree = (await run("errors", stream["name"], "--tree", str(first["id"]))).out
    assert tree == f"No transaction waits behind {first['id']}.\n"
    tried = (await run("errors", stream["name"], "--dry-run", str(second["id"]))).out
    assert "Nothing of transaction" in tried
    assert (await run("errors", stream["name"], "--restore", str(second["id"]), "--change", "1")).code == 0
    failed = await run("errors", stream["name"], "--execute", str(first["id"]))
    assert (failed.code, "duplicate key" in failed.err, "cure:" in failed.err) == (1, True, True)
    both = await run("errors", stream["name"], "--execute", "1", "--discard", "1")
    assert (both.code, "one of" in both.err) == (1, True)
    sides.on_destination("DELETE FROM orders WHERE id = 500")
    assert (await run("errors", stream["name"], "--execute", str(first["id"]))).code == 0
    unsaid = await run("errors", stream["name"], "--discard", str(second["id"]))
    assert (unsaid.code, "--reason" in unsaid.err) == (1, True)
    assert (await run("errors", stream["name"], "--discard", str(second["id"]), "--reason", "not wanted")).code == 0
    await parked(operator, path, 0)
    found = [row for row in orders(sides, "destination") if row[0] >= 500]
    assert found == [(500, "x", 2), (600, "b", 1)]


# --- table rules


async def test_tables_come_and_go_while_it_runs(
    shell: Any,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    stream: dict[str, Any],
    sides: Sides,
) -> None:
    path, source, destination = f"{STREAMS}/{stream['id']}", sides.source["dbname"], sides.destination["dbname"]
    sides.on_source(
        "CREATE TABLE late (id bigint PRIMARY KEY, body text)",
        "INSERT INTO late SELECT n, 'copied' FROM generate_series(1, 50) n",
        f"ALTER TABLE late OWNER TO {sides.source['user']}",
        "CREATE TABLE notes (body text)",
        f"ALTER TABLE notes OWNER TO {sides.source['user']}",
    )
    rules = {"include": [{"schema": "public", "table": "*"}], "exclude": [{"schema": "public", "table": "customers"}]}
    refused = await operator.patch(path, json={"rules": rules}, headers={"If-Match": stream["etag"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "preflight_failed"), refused.text
    assert "Nothing was changed" in refused.json()["cure"]
    assert "REPLICA IDENTITY" in refused.json()["sql"]
    unchanged = (await operator.get(path)).json()
    assert (unchanged["rules"], unchanged["etag"]) == (stream["rules"], stream["etag"])

    rules["exclude"].append({"schema": "public", "table": "notes"})
    changed = await operator.patch(path, json={"rules": rules}, headers={"If-Match": stream["etag"]})
    assert changed.status_code == 200, changed.text
    stale = await operator.patch(path, json={"rules": rules}, headers={"If-Match": stream["etag"]})
    assert stale.status_code == 412

    async def settled() -> bool:
        shown = (await operator.get(path)).json()
        states = {table["table"]: table["state"] for table in shown["tables"]}
        return shown["phase"] == "REPLICATING" and states == {"orders": "REPLICATING", "late": "REPLICATING"}

    await eventually(settled)
    sides.on_source("INSERT INTO late VALUES (51, 'changed')", "INSERT INTO customers VALUES (1, 'nobody')")
    sides.on_source("INSERT INTO orders VALUES (700, 'after', 1)")
    await same_rows(sides)

    async def arrived() -> bool:
        query = "SELECT id, body FROM late ORDER BY id"
        return of(sides, source, query) == of(sides, destination, query)

    await eventually(arrived)
    assert of(sides, destination, "SELECT count(*) FROM customers") == [(0,)]

    # The same rules again, by the command line: what was created since comes in.
    sides.on_source("CREATE TABLE later (id bigint PRIMARY KEY)", f"ALTER TABLE later OWNER TO {sides.source['user']}")
    choice = ["--include", "public.*", "--exclude", "public.customers", "--exclude", "public.notes"]
    again = await with_token(shell, users)("streams", "rules", stream["name"], *choice)
    assert again.code == 0, again.err

    async def there() -> bool:
        return of(sides, destination, "SELECT to_regclass('later') IS NOT NULL") == [(True,)]

    await eventually(there)


async def test_a_table_of_a_stopped_stream_is_copied_after_the_start(
    operator: httpx.AsyncClient, stream: dict[str, Any], sides: Sides
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    at = f"{path}/destinations/{stream['destinations'][0]['id']}"
    await same_rows(sides)
    assert (await operator.post(f"{path}:stop")).status_code == 202
    await wait_for(operator, path, status="DISABLED")
    sides.on_destination("DELETE FROM orders WHERE id <= 50")
    asked = await operator.post(f"{at}/tables:copy", json={"schema": "public", "table": "orders"})
    assert asked.status_code == 202, asked.text
    waits = (await operator.get(asked.headers["location"])).json()
    assert (waits["state"], waits["error"]) == ("running", None)
    assert (
        waits["waiting_for"] == f"The stream {stream['name']}, which is stopped. Start it: the copy follows by itself."
    )
    assert (await operator.post(f"{path}:start")).status_code == 202
    ended = await wait_for(operator, asked.headers["location"], state="succeeded")
    assert ended["error"] is None
    assert orders(sides, "source") == orders(sides, "destination")


# --- an engine that is lost


def left_at(sides: Sides, stream: dict[str, Any]) -> list[str]:
    """The stream's objects that are still there."""
    source, destination = sides.source["dbname"], sides.destination["dbname"]
    found = []
    if of(sides, source, f"SELECT FROM pg_replication_slots WHERE slot_name = '{slot(stream)}'"):
        found.append("slot")
    if of(sides, source, f"SELECT FROM pg_publication WHERE pubname = '{slot(stream)}'"):
        found.append("publication")
    if of(sides, source, f"SELECT FROM pg_publication WHERE pubname = '{slot(stream)}_inserts'"):
        found.append("publication of inserts")
    if of(sides, destination, "SELECT FROM pg_namespace WHERE nspname = 'thalweg'"):
        found.append("schema")
    return found


async def keep_in_the_form_without_a_list(resources: Resources, engine: RealEngine) -> None:
    """As control plane and engine kept a stream with one destination before destinations were a list."""
    async with resources.sessions.begin() as session:
        kept = (await session.scalars(select(AbandonedStreamRow))).one()
        definition = json.loads(resources.secrets.open(kept.definition_sealed))
        (only,) = definition.pop("destinations")
        definition["destination"] = {"name": only["name"], "conninfo": only["conninfo"]}
        kept.definition_sealed = resources.secrets.seal(json.dumps(definition))
    stored = {"format": 1, "revision": 1, "streams": [{**definition, "status": "ENABLED", "force": False}]}
    (engine.directory / "state" / "desired.json").write_text(json.dumps(stored))


@pytest.mark.parametrize("has_old_form", [False, True])
async def test_stream_of_a_lost_engine_is_deleted_by_force_and_stays_deleted(
    has_old_form: bool,
    operator: httpx.AsyncClient,
    stream: dict[str, Any],
    sides: Sides,
    thalwegd: RealEngine,
    settings: Settings,
    resources: Resources,
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    settings.engine_lost_after = 1.0
    thalwegd.stop()
    plain = (await operator.delete(path)).json()["operation_id"]
    engine = stream["capture_engine"]["id"]
    await wait_for(operator, f"/api/v1/engines/{engine}", state="UNREACHABLE")

    async def says_how_to_go_on() -> bool:
        waiting = (await operator.get(path)).json()
        return waiting["desired_status"] == "DROPPED" and "force" in waiting["health"]["reason"]

    await eventually(says_how_to_go_on)
    everything = ["slot", "publication", "publication of inserts", "schema"]
    assert left_at(sides, stream) == everything, "without force it waits for its engine"

    forced = (await operator.delete(path, params={"force": True})).json()["operation_id"]
    done = await wait_for(operator, f"/api/v1/operations/{forced}", state="succeeded")
    assert done["error"]["code"] == "engine_given_up"
    assert "itself" in done["error"]["message"]
    assert (await operator.get(f"/api/v1/operations/{plain}")).json()["error"]["code"] == "superseded"
    assert (await operator.get(path)).status_code == 404
    assert left_at(sides, stream) == []
    assert orders(sides, "destination") == orders(sides, "source"), "the replicated rows stay"

    # It comes back with the stream on its disk, and its tables are empty: a fresh copy would even succeed.
    sides.on_destination("DROP TABLE orders, customers")
    if has_old_form:
        await keep_in_the_form_without_a_list(resources, thalwegd)
    thalwegd.start()
    assert thalwegd.stream_ids() == [stream["id"]]

    async def forgotten() -> bool:
        return thalwegd.stream_ids() == [] and left_at(sides, stream) == []

    await eventually(forgotten)
    await wait_for(operator, f"/api/v1/engines/{engine}", state="ONLINE", message=None)

    async def laid_to_rest() -> bool:
        async with resources.sessions() as session:
            return (await session.execute(text("SELECT count(*) FROM abandoned_streams"))).scalar_one() == 0

    await eventually(laid_to_rest)
    assert (await operator.get(path)).status_code == 404


@pytest.fixture
async def far_stream(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    thalwegd: RealEngine,
    tmp_path: Path,
    collector: Running,  # noqa: F811
) -> AsyncGenerator[tuple[dict[str, Any], RealEngine], None]:
    """A stream that `thalwegd` captures and a second engine applies, and that engine."""
    applying = RealEngine(tmp_path / "applying")
    applying.start()
    ids = [(await enrol(admin, engine, name=name)).json()["id"]
           for name, engine in (("near", thalwegd), ("far", applying))]  # fmt: skip
    made = await created(admin, registered, capture_engine_id=ids[0], applies=ids[1])
    yield await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING"), applying
    applying.stop()


async def test_stream_whose_applying_engine_is_lost_is_deleted_by_force(
    operator: httpx.AsyncClient,
    far_stream: tuple[dict[str, Any], RealEngine],
    sides: Sides,
    thalwegd: RealEngine,
    settings: Settings,
) -> None:
    """The sending half ends by itself; the receiving half, which would clean up, is the lost one's."""
    stream, applying = far_stream
    sides.on_source("INSERT INTO orders VALUES (700, 'over two engines', 1)")
    await same_rows(sides)
    settings.engine_lost_after = 1.0
    applying.stop()
    forced = (await operator.delete(f"{STREAMS}/{stream['id']}", params={"force": True})).json()["operation_id"]
    done = await wait_for(operator, f"/api/v1/operations/{forced}", state="succeeded")
    assert done["error"]["code"] == "engine_given_up", done
    assert "far" in done["error"]["message"]
    assert (await operator.get(f"{STREAMS}/{stream['id']}")).status_code == 404
    assert left_at(sides, stream) == []
    assert orders(sides, "destination") == orders(sides, "source"), "the replicated rows stay"

    async def forgotten() -> bool:
        return thalwegd.stream_ids() == []

    await eventually(forgotten)
    # It comes back with its half on its disk, and must neither copy nor apply again.
    applying.start()

    async def forgotten_there() -> bool:
        return applying.stream_ids() == [] and left_at(sides, stream) == []

    await eventually(forgotten_there)


async def test_forced_delete_without_engine_and_destination_says_what_is_left(
    admin: httpx.AsyncClient, stream: dict[str, Any], sides: Sides, thalwegd: RealEngine, settings: Settings
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    settings.engine_lost_after = 0.3
    thalwegd.stop()
    database = stream["destinations"][0]["database"]["id"]
    elsewhere = {"port": 1, "password": sides.destination["password"]}
    moved = await admin.patch(f"/api/v1/databases/{database}", json=elsewhere, headers={"If-Match": "*"})
    assert moved.status_code == 200
    forced = (await admin.delete(path, params={"force": True})).json()["operation_id"]
    done = await wait_for(admin, f"/api/v1/operations/{forced}", state="succeeded")
    assert done["error"]["code"] == "left_behind"
    assert left_at(sides, stream) == ["schema"]
    told = done["error"]["message"]
    assert "Left behind at the destination" in told
    assert "pg_drop_replication_slot" not in told
    # The SQL that it gives does what it says.
    statements = [part.strip() for part in told.split("): ")[1].split(";") if part.strip().startswith("DELETE")]
    assert len(statements) == 7
    sides.on_destination(*statements)
    assert of(sides, sides.destination["dbname"], "SELECT count(*) FROM thalweg.stream") == [(0,)]
    sides.on_destination("DROP SCHEMA thalweg CASCADE")


async def test_force_does_not_give_up_an_engine_that_answers(
    operator: httpx.AsyncClient, stream: dict[str, Any], sides: Sides, settings: Settings
) -> None:
    settings.engine_lost_after = 0.2
    settings.engine_timeout = 60  # however slow it is, it answers
    forced = (await operator.delete(f"{STREAMS}/{stream['id']}", params={"force": True})).json()["operation_id"]
    done = await wait_for(operator, f"/api/v1/operations/{forced}", state="succeeded")
    assert done["error"] is None
    assert left_at(sides, stream) == []


# --- operations take as long as they take


async def test_operations_last_from_being_told_to_being_done(
    operator: httpx.AsyncClient, stream: dict[str, Any]
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    for action in ("stop", "start"):
        operation = (await operator.post(f"{path}:{action}")).json()["operation_id"]
        done = await wait_for(operator, f"/api/v1/operations/{operation}", state="succeeded")
        assert done["created_at"] <= done["started_at"] < done["finished_at"], done


# --- TLS


async def test_engine_over_tls_with_a_certificate_of_its_own(
    app: FastAPI, admin: httpx.AsyncClient, settings: Settings, tmp_path: Path
) -> None:
    certificate, key = make_certificate(tmp_path)
    engine = RealEngine(tmp_path / "tls-engine", (certificate, key))
    engine.start()
    try:
        stranger = await enrol(admin, engine)
        assert (stranger.status_code, "THALWEG_ENGINE_CA_FILE" in stranger.json()["cure"]) == (422, True)
        plain = await enrol(admin, engine, engine.url.replace("https", "http"))
        assert (plain.status_code, "https://" in plain.json()["cure"]) == (422, True)

        trusting = make_resources(settings.model_copy(update={"engine_ca_file": certificate}), "test")
        try:
            app.state.resources = trusting
            assert (await enrol(admin, engine)).status_code == 201
            client = EngineClient(trusting.http, engine.url, engine.token, 5)
            assert (await client.status()).engine.api == 1
            with pytest.raises(EngineFailure) as refused:
                await EngineClient(trusting.http, engine.url, "not the token", 5).status()
            assert (refused.value.status, refused.value.code) == (401, "unauthorized")
            elsewhere = engine.url.replace("127.0.0.1", "localhost")
            with pytest.raises(EngineFailure, match="certificate"):
                await EngineClient(trusting.http, elsewhere, engine.token, 5).status()
        finally:
            await close_resources(trusting)
    finally:
        engine.stop()
    with pytest.raises(EngineCaError, match="THALWEG_ENGINE_CA_FILE"):
        make_resources(settings.model_copy(update={"engine_ca_file": key.with_name("absent.pem")}), "test")


# --- identity


async def test_engine_takes_the_identity_that_it_is_given(
    admin: httpx.AsyncClient, thalwegd: RealEngine, resources: Resources, tmp_path: Path
) -> None:
    made = (await enrol(admin, thalwegd)).json()
    shown = (await admin.get(f"/api/v1/engines/{made['id']}")).json()
    assert shown["identity"]["name"] == f"engine-{made['id']}"
    async with resources.sessions() as session:
        authority = (await session.execute(text("SELECT certificate FROM authority"))).scalar_one()
    (tmp_path / "ca.pem").write_text(authority)
    (certificate,) = thalwegd.directory.rglob("identity.pem")
    assert certificate.stat().st_mode & 0o777 == 0o600
    for purpose in ("sslclient", "sslserver"):
        checked = await asyncio.to_thread(
            subprocess.run,
            [
                "openssl", "verify", "-x509_strict", "-CAfile", str(tmp_path / "ca.pem"), "-purpose", purpose,
                "-verify_hostname", f"engine-{made['id']}", str(certificate),
            ],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert checked.returncode == 0, checked.stdout + checked.stderr
    fingerprint = await asyncio.to_thread(
        subprocess.run,
        ["openssl", "x509", "-in", str(certificate), "-noout", "-fingerprint", "-sha256"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert fingerprint.stdout.strip().partition("=")[2].replace(":", "").lower() == shown["identity"]["fingerprint"]
    # Enrolled anew, it is another one.
    assert (await admin.delete(f"/api/v1/engines/{made['id']}")).status_code == 204
    again = (await enrol(admin, thalwegd)).json()
    assert again["identity"]["name"] == f"engine-{again['id']}" != shown["identity"]["name"]
