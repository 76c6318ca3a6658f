"""The preflight names code that the source's definitions would call at a destination, and asks for consent."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of
from tests.support.audit import asked_for
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_preflight import ALL, checks_of
from thalweg.inspection import carried_code
from thalweg.kernel.settings import PACKAGE

pytestmark = pytest.mark.usefixtures("engine")
CHECK = "destination:carried_code"
ENGINE_SOURCE = Path(__file__).parents[2] / "engine" / "src" / "instantiation" / "called_code.inc"


async def test_functions_that_the_definitions_call_are_named(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    harmless = (await checks_of(operator, registered))[CHECK]
    assert harmless["status"] == "ok"
    for side in (sides.on_source, sides.on_destination):
        side(
            "CREATE SCHEMA app", "GRANT USAGE ON SCHEMA app TO PUBLIC",
            "CREATE FUNCTION app.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
            "CREATE FUNCTION app.g(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'",
            "CREATE OPERATOR app.=~= (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_catalog.int4eq)",
        )  # fmt: skip
    sides.on_source(
        "CREATE DOMAIN app.checked AS text CHECK (app.g(VALUE))",
        "CREATE DOMAIN app.bound AS int CHECK (app.f(VALUE) > 0)",
        "CREATE TYPE app.span AS RANGE (subtype = app.bound)",
        """CREATE TABLE loaded (
             id serial PRIMARY KEY, made timestamptz DEFAULT now(), other uuid DEFAULT gen_random_uuid(),
             secret text DEFAULT pg_read_file('passwords'), n int DEFAULT app.f(1),
             twice int GENERATED ALWAYS AS (app.f(2)) STORED, name app.checked,
             CONSTRAINT reads CHECK (query_to_xml('SELECT 1', true, true, '') IS NOT NULL),
             CONSTRAINT plain CHECK (n > 0 AND n OPERATOR(app.=~=) n), during app.span)""",
        "CREATE INDEX by_f ON loaded (app.f(id))",
        f"ALTER TABLE loaded OWNER TO {sides.source['user']}",
    )
    found = (await checks_of(operator, registered))[CHECK]
    assert found["status"] == "warning", found
    assert "4 functions, operators and types" in found["detail"] and sides.destination["user"] in found["detail"]
    for told in (
        "app.f(integer): public.loaded (default of n), public.loaded (generated column twice), "
        "public.loaded (index public.by_f), public.loaded (type app.bound)",
        "app.g(text): public.loaded (type app.checked)",
        "pg_catalog.pg_read_file(text): public.loaded (default of secret)",
        "pg_catalog.query_to_xml(text, boolean, boolean, text): public.loaded (constraint reads)",
    ):
        assert told in found["detail"]


async def test_a_powerful_role_needs_consent(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    sides.on_source("ALTER TABLE orders ADD CHECK (query_to_xml('SELECT 1', true, true, '') IS NOT NULL)")
    assert (await checks_of(operator, registered))[CHECK]["status"] == "warning"
    user = sides.destination["user"]
    for power in ("SUPERUSER", "BYPASSRLS", "CREATEROLE"):
        sides.on_destination(f"ALTER ROLE {user} {power}")
        found = (await checks_of(operator, registered))[CHECK]
        assert (found["status"], found["accepted"]) == ("consent", False)
        assert power in found["detail"] and "query_to_xml" in found["items"][0]
        assert "Only an admin" in found["cure"]
        assert (await checks_of(admin, registered, accept=[found["consent"]]))[CHECK]["accepted"]
        sides.on_destination(f"ALTER ROLE {user} NO{power}")
    sides.on_destination(f"GRANT pg_execute_server_program TO {user}")
    assert (await checks_of(operator, registered))[CHECK]["status"] == "consent"
    # A table that is there has the definitions that somebody gave it there.
    sides.on_destination("CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL, amount numeric(12,2))")
    assert (await checks_of(operator, registered))[CHECK]["status"] == "ok"


async def test_what_runs_is_judged_by_the_destination(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """The source may say of a name what it likes."""
    for side in (sides.on_source, sides.on_destination):
        side("CREATE SCHEMA app", "GRANT USAGE ON SCHEMA app TO PUBLIC")
    sides.on_destination(
        "CREATE FUNCTION app.does_something(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR app.=~= (LEFTARG = int, RIGHTARG = int, FUNCTION = app.does_something)",
    )
    sides.on_source(
        "CREATE OPERATOR app.=~= (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_catalog.int4eq)",
        "ALTER TABLE orders ADD n int CHECK (n OPERATOR(app.=~=) n)",
    )
    found = (await checks_of(operator, registered))[CHECK]
    assert found["status"] == "warning" and "app.=~=(integer, integer)" in found["detail"], found


async def test_code_behind_types_is_found_where_it_runs(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """The source's domain checks nothing, and its enum has no casts."""
    for side in (sides.on_source, sides.on_destination):
        side(
            "CREATE SCHEMA app", "GRANT USAGE ON SCHEMA app TO PUBLIC", "CREATE TYPE app.mood AS ENUM ('calm')",
            "CREATE TYPE app.state AS ENUM ('new')",
        )  # fmt: skip
    sides.on_source(
        "CREATE DOMAIN app.word AS text",
        "ALTER TABLE orders ADD mood app.mood DEFAULT 'calm', ADD state app.state DEFAULT 'new', "
        "ADD CONSTRAINT word CHECK ((item::app.word) IS NOT NULL), ADD CONSTRAINT plain CHECK (state = 'new'), "
        "ADD CONSTRAINT json CHECK (to_json(mood) IS NOT NULL)",
    )
    sides.on_destination(
        "CREATE FUNCTION app.spy(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE DOMAIN app.word AS text CHECK (app.spy(VALUE))",
        "CREATE FUNCTION app.as_json(app.mood) RETURNS json LANGUAGE sql AS $$SELECT '1'::json$$",
        "CREATE CAST (app.mood AS json) WITH FUNCTION app.as_json(app.mood)",
        f"ALTER ROLE {sides.destination['user']} CREATEDB",
    )
    found = (await checks_of(operator, registered))[CHECK]
    assert (found["status"], found["items"]) == ("consent", [
        "type app.mood: public.orders (constraint json)", "type app.word: public.orders (constraint word)",
    ])  # fmt: skip


async def test_what_the_copy_has_still_to_make_is_no_error(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """A function whose arguments are of a type that the destination lacks is none of PostgreSQL's."""
    sides.on_source(
        "CREATE SCHEMA app", "GRANT USAGE ON SCHEMA app TO PUBLIC", "CREATE TYPE app.mood AS ENUM ('calm')",
        "CREATE FUNCTION app.weight(app.mood) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
        "ALTER TABLE orders ADD weight int DEFAULT app.weight('calm')",
    )  # fmt: skip
    found = (await checks_of(operator, registered))[CHECK]
    assert found["status"] == "warning" and "app.weight(app.mood)" in found["detail"], found


def test_the_engine_asks_the_same_questions() -> None:
    assert (PACKAGE / "contract" / "called_code.inc").read_text() == ENGINE_SOURCE.read_text()
    trust = ENGINE_SOURCE.parents[1] / "pg" / "bookkeeping_trust.inc"
    assert (PACKAGE / "contract" / "bookkeeping_trust.inc").read_text() == trust.read_text()


@pytest.mark.usefixtures("collector")
async def test_the_engine_is_told_what_was_accepted(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], sides: Sides,
    engine: EngineDouble,
) -> None:  # fmt: skip
    async def sent(orders: int) -> list[dict[str, Any]]:
        """The tables of the document, once so many definitions of orders are accepted in it."""

        async def check() -> list[dict[str, Any]]:
            tables: list[dict[str, Any]] = [table for stream in engine.desired["streams"] for table in stream["tables"]]
            found = {table["table"]: len(table.get("accepted_code", [])) for table in tables}
            return tables if found == {"customers": 0, "orders": orders} else []

        return list(await eventually(check))

    async def save(*accept: str, by: httpx.AsyncClient = operator) -> httpx.Response:
        body = {"rules": ALL, "accept": list(accept)}
        return await by.patch(path, json=body, headers={"If-Match": "*"})

    def is_for_admins(answer: httpx.Response) -> bool:
        (error,) = answer.json().get("errors") or [{}]
        told = (answer.status_code, error.get("code"), error.get("pointer"))
        return told == (403, "permission_denied", "/accept") and "Ask an admin" in answer.json()["cure"]

    user = sides.destination["user"]
    sides.on_destination(f"ALTER ROLE {user} CREATEDB")
    sides.on_source(
        "ALTER TABLE orders ADD CONSTRAINT xml CHECK (query_to_xml('SELECT 1', true, true, '') IS NOT NULL)"
    )
    consent = (await checks_of(operator, registered))[CHECK]["consent"]
    body = {**body_of(registered), "accept": [consent]}
    assert is_for_admins(await operator.post(STREAMS, json=body))
    asked = {name: value for name, value in body.items() if name != "name"}
    assert is_for_admins(await operator.post("/api/v1/preflights", json=asked))
    answer = await admin.post(STREAMS, json=body)
    assert answer.status_code == 202, answer.text
    path = f"{STREAMS}/{answer.json()['stream_id']}"
    first = await sent(1)

    # Of what came later, that alone is asked for; what was accepted before stays so.
    sides.on_destination(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL, amount numeric(12,2))",
        f"ALTER TABLE orders OWNER TO {user}",
    )
    sides.on_source("ALTER TABLE orders ADD CONSTRAINT later CHECK (pg_read_file(item) IS NOT NULL) NOT VALID")
    refused = await save()
    assert refused.status_code == 409, refused.text
    (error,) = refused.json()["errors"]
    assert error["code"] == "carried_code" and "1 function" in error["message"], error
    assert is_for_admins(await save("carried_code"))
    assert (await save("carried_code", by=admin)).status_code == 200
    await sent(2)
    entry, *_ = await asked_for(admin)
    assert entry["action"] == "streams_update" and "pg_read_file" in entry["after"]["accepted"][0], entry
    # An operator may go on with what an admin has accepted.
    assert (await save("carried_code")).status_code == 200

    # A removed definition is forgotten.
    sides.on_source("ALTER TABLE orders DROP CONSTRAINT later")
    assert (await save()).status_code == 200
    assert await sent(1) == first


async def test_a_consent_is_to_the_definition_not_to_the_functions_name(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """The effect of query_to_xml depends on its arguments."""
    define = "ALTER TABLE orders ADD CONSTRAINT xml CHECK (query_to_xml('{}', true, true, '') IS NOT NULL)"
    sides.on_destination(f"ALTER ROLE {sides.destination['user']} CREATEDB")
    sides.on_source(define.format("SELECT 1"))
    seen = (await checks_of(operator, registered))[CHECK]
    sides.on_source("ALTER TABLE orders DROP CONSTRAINT xml", define.format("SELECT 2"))
    now = (await checks_of(operator, registered, accept=[seen["consent"]]))[CHECK]
    assert (now["items"], now["accepted"]) == (seen["items"], False)
    assert (await checks_of(admin, registered, accept=[now["consent"]]))[CHECK]["accepted"]


async def test_a_consent_holds_whatever_the_roles_settings_are(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """Constants of the catalogue are written as settings say; the engine's session has others than this one."""
    sides.on_destination(f"ALTER ROLE {sides.destination['user']} CREATEDB")
    sides.on_source(
        "ALTER TABLE orders ADD day timestamptz, "
        "ADD CHECK (day < '2100-01-02 00:00+00' OR pg_read_file(item) <> '\\') NOT VALID"
    )
    before = (await checks_of(operator, registered))[CHECK]["consent"]
    user = sides.source["user"]
    sides.on_source(
        f"ALTER ROLE {user} SET timezone = 'Asia/Tokyo'", f"ALTER ROLE {user} SET datestyle = 'German'",
        f"ALTER ROLE {user} SET quote_all_identifiers = on",
    )  # fmt: skip
    assert (await checks_of(operator, registered))[CHECK]["consent"] == before


async def test_no_more_is_accepted_than_the_engine_takes(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_code, "ACCEPTED_MAX", 1)
    sides.on_destination(f"ALTER ROLE {sides.destination['user']} CREATEDB")
    sides.on_source(
        "ALTER TABLE orders ALTER item SET DEFAULT pg_read_file('a'), ADD CHECK (pg_read_file(item) <> 'b') NOT VALID"
    )
    found = await checks_of(operator, registered)
    assert found["source:carried_code"]["status"] == "failed", found
    assert '"public"."orders"' in found["source:carried_code"]["detail"]
