"""The parameter statement_handlers: who may set it, how it is checked where it is typed, and against both databases."""

from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.engine_double import EngineDouble

ORDERS = {"schema": "public", "table": "orders"}
COUNT = {"when": "precommit", "statement": "INSERT INTO audit.transactions VALUES (:xid)"}
NOTE = {"when": "after", **ORDERS, "statement": "INSERT INTO audit.orders VALUES (:operation, :new.id, :new.amount)"}
SETTLE = {
    "when": "error", **ORDERS, "operations": ["INSERT"], "errors": ["23505", "22", "apply_conflict"],
    "statement": "INSERT INTO audit.refused VALUES (:new.id, :sqlstate, :constraint, :kind, :error)",
}  # fmt: skip
ANY = {"If-Match": "*"}


def parameters(*handlers: Any) -> dict[str, Any]:
    return {"statement_handlers": list(handlers)}


def make_audit(sides: Sides) -> None:
    user = sides.destination["user"]
    sides.on_destination(
        "CREATE SCHEMA audit",
        "CREATE TABLE audit.transactions (xid bigint)",
        "CREATE TABLE audit.orders (operation text, id bigint, amount numeric)",
        f"GRANT USAGE ON SCHEMA audit TO {user}",
        f"GRANT INSERT ON ALL TABLES IN SCHEMA audit TO {user}",
    )


async def test_entries_are_checked_at_their_places(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    wrong: list[tuple[Any, str]] = [
        ("SELECT 1", ""),
        ([{"statement": "SELECT 1"}], "/0/when"),
        ([{"when": "before", "statement": "SELECT 1"}], "/0/when"),
        ([{"when": "after"}], "/0/statement"),
        ([{"when": "after", "statement": ""}], "/0/statement"),
        ([{"when": "after", "statement": "COMMIT"}], "/0/statement"),
        ([{"when": "after", "statement": "SELECT 1; SELECT 2"}], "/0/statement"),
        ([{"when": "after", "statement": "SELECT :new.id"}], "/0/statement"),
        ([{"when": "after", "statement": "SELECT 1\0"}], "/0/statement"),
        ([{"when": "after", "statement": f"SELECT '{'é' * 10_000}'"}], "/0/statement"),
        ([{"when": "after", "table": "orders", "statement": "SELECT 1"}], "/0/schema"),
        ([{"when": "after", "schema": "public", "statement": "SELECT 1"}], "/0/table"),
        ([{"when": "instead", "statement": "SELECT 1"}], "/0/table"),
        ([{**COUNT, **ORDERS}], "/0/table"),
        ([{**COUNT, "operations": ["INSERT"]}], "/0/operations"),
        ([{"when": "precommit", "statement": "SELECT :table"}], "/0/statement"),
        ([{"when": "precommit", "statement": "SELECT :xid AS xid INTO TEMP t"}], "/0/statement"),
        ([{**NOTE, "operations": []}], "/0/operations"),
        ([{**NOTE, "operations": ["TRUNCATE"]}], "/0/operations/0"),
        ([{**NOTE, "operations": ["INSERT", "INSERT"]}], "/0/operations"),
        ([{**NOTE, "action": "discard"}], "/0/action"),
        ([COUNT] * 101, ""),
        ([{**SETTLE, "errors": []}], "/0/errors"),
        ([{**SETTLE, "errors": "23505"}], "/0/errors"),
        ([{**SETTLE, "errors": ["23505", "235"]}], "/0/errors/1"),
        ([{**SETTLE, "errors": ["insert_exists"]}], "/0/errors/0"),
        ([{**SETTLE, "errors": ["22", "22"]}], "/0/errors"),
        ([{**NOTE, "errors": ["22"]}], "/0/errors"),
        ([{**COUNT, "errors": ["22"]}], "/0/errors"),
        ([{**NOTE, "statement": "SELECT :sqlstate"}], "/0/statement"),
        ([{**COUNT, "statement": "SELECT :error"}], "/0/statement"),
        ([{"when": "error", "statement": "SELECT :new.id"}], "/0/statement"),
        ([{"when": "error", "schema": "public", "statement": "SELECT 1"}], "/0/table"),
    ]
    for handlers, place in wrong:
        answer = await admin.post(STREAMS, json=body_of(registered, parameters={"statement_handlers": handlers}))
        assert answer.status_code == 422, handlers
        problem = answer.json()["errors"][0]
        assert problem["pointer"] == f"/parameters/statement_handlers{place}", handlers
        assert "statement" in problem["cure"]


async def test_only_administrators_may_change_it(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    sides: Sides,
) -> None:  # fmt: skip
    make_audit(sides)

    def refused(answer: httpx.Response, pointer: str = "/parameters/statement_handlers") -> None:
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (403, "permission_denied"), answer.text
        assert "Only administrators" in problem["detail"] and "operator" in problem["detail"]
        assert problem["errors"][0]["pointer"] == pointer

    body = body_of(registered, parameters=parameters(COUNT))
    refused(await operator.post(STREAMS, json=body))
    of_destination = body_of(registered)
    of_destination["destinations"][0]["parameters"] = parameters(COUNT)
    refused(await operator.post(STREAMS, json=of_destination), "/destinations/0/parameters/statement_handlers")
    preflight = {name: value for name, value in body.items() if name != "name"}
    refused(await operator.post("/api/v1/preflights", json=preflight))

    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    place = f"{path}/destinations/{stream['destinations'][0]['id']}"
    for at, value in ((path, parameters(COUNT)), (place, parameters(COUNT, COUNT))):
        refused(await operator.patch(at, json={"parameters": value}, headers=ANY))
        set_by_admin = await admin.patch(at, json={"parameters": value}, headers=ANY)
        assert set_by_admin.status_code == 200, set_by_admin.text
    # The value as it is may be sent along, and other parameters may be changed.
    for at, value in ((path, parameters(COUNT)), (place, parameters(COUNT, COUNT))):
        kept = {"parameters": {**value, "parallelism": 2}}
        assert (await operator.patch(at, json=kept, headers=ANY)).status_code == 200
        refused(await operator.patch(at, json={"parameters": parameters()}, headers=ANY))
    refused(await operator.patch(place, json={"parameters": {}}, headers=ANY))
    again = await operator.get(path)
    assert again.json()["parameters"]["statement_handlers"] == [COUNT]
    # Another database would execute those of the stream.
    added = {"database_id": body["destinations"][0]["database_id"]}
    refused(await operator.post(f"{path}/destinations", json=added))
    assert (await admin.post(f"{path}/destinations", json=added)).status_code == 422, "it is a destination already"


async def test_rights_come_before_the_statements_are_read(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    """Reading them takes time, for everybody's requests."""
    wrong = parameters({"when": "after", "statement": "COMMIT"})
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    at_destination = body_of(registered)
    at_destination["destinations"][0]["parameters"] = wrong
    preflight = {name: value for name, value in at_destination.items() if name != "name"}
    other = (await operator.post("/api/v1/databases", json={**sides.destination, "name": "another"})).json()
    answers = [
        await operator.post(STREAMS, json={**body_of(registered, parameters=wrong), "name": "another"}),
        await operator.post(STREAMS, json={**at_destination, "name": "another"}),
        await operator.post("/api/v1/preflights", json=preflight),
        await operator.post(f"{path}/destinations", json={"database_id": other["id"], "parameters": wrong}),
        await operator.patch(path, json={"parameters": wrong}, headers=ANY),
        await operator.patch(
            f"{path}/destinations/{stream['destinations'][0]['id']}", json={"parameters": wrong}, headers=ANY
        ),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "permission_denied")] * 6


async def test_a_statement_has_a_thousand_names_at_most(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    many = {**NOTE, "statement": f"SELECT {', '.join(f':new.c{number}' for number in range(1001))}"}
    answer = await admin.post(STREAMS, json=body_of(registered, parameters=parameters(many)))
    assert (answer.status_code, answer.json()["errors"][0]["message"]) == (422, "It has more than 1,000 names.")


async def test_the_destination_plans_each_statement(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    make_audit(sides)
    sides.on_destination(
        "CREATE TABLE audit.closed (id bigint)",
        "CREATE FUNCTION audit.refuse() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'executed'; END $$",
    )
    sides.on_source("ALTER TABLE orders REPLICA IDENTITY FULL")

    async def check_of(*handlers: dict[str, Any]) -> dict[str, Any]:
        body = body_of(registered, parameters=parameters(*handlers))
        del body["name"]
        answer = await admin.post("/api/v1/preflights", json=body)
        (check,) = [one for one in answer.json()["checks"] if one["id"] == "statement_handlers"]
        return dict(check)

    for statement, why in [
        ("INSERT INTO audit.nothing VALUES (:new.id)", 'Statement 2 at character 13: relation "audit.nothing" does'),
        ("INSERT INTO nowhere.t VALUES (1)", "Statement 2 at character 13: relation"),
        ('SELECT :new."item", :new."item", wrong', 'Statement 2 at character 34: column "wrong" does not exist'),
        ("INSERT INTO audit.orders (id) VALUES (:new.item)", "Statement 2 at character 39: column"),
        ("INSERT INTO audit.closed VALUES (:new.id)", "Statement 2: permission denied for table closed"),
        ("SELECT lower(:new.amount)", "Statement 2 at character 8: function lower(numeric) does not exist"),
        ("SELECT :new.weight", "Statement 2: changes of public.orders do not have :new.weight"),
    ]:
        check = await check_of(COUNT, {**NOTE, "statement": statement})
        assert check["status"] == "failed" and why in check["detail"], check
        assert check["side"] == "destination" and "pg_catalog" in check["cure"]
    check = await check_of({**NOTE, "table": "nothing"})
    assert "Statement 1 is of public.nothing, which is no table of the stream" in check["detail"]
    check = await check_of({**NOTE, "statement": "UPDATE public.orders SET amount = 1 WHERE id = :new.id"})
    assert check["status"] == "warning" and "which are not all there" in check["detail"], "the copy makes the table"
    check = await check_of(COUNT, NOTE, {**NOTE, "statement": "SELECT audit.refuse(), :commit_time + '1 day'"})
    assert check["status"] == "ok", "nothing is executed"


async def test_values_that_do_not_come_are_named_with_the_cure(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    make_audit(sides)
    stream = await created(admin, registered)
    path = f"{STREAMS}/{stream['id']}"

    async def answer_to(**handler: Any) -> httpx.Response:
        return await admin.patch(path, json={"parameters": parameters({**NOTE, **handler})}, headers=ANY)

    refused = await answer_to(statement="SELECT :old.id, :old.amount")
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["code"]) == (409, "statement_values")
    assert error["pointer"] == "/parameters/statement_handlers"
    assert ":old.amount of public.orders" in error["message"] and ":old.id" not in error["message"]
    assert error["sql"] == 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;'
    assert "Nothing was changed." in refused.json()["cure"]
    for fitting in (
        {"statement": "SELECT :old.amount", "operations": ["INSERT"]},
        {"statement": "SELECT :old.id"},
        {"statement": "SELECT :new.item"},  # a warning
    ):
        assert (await answer_to(**fitting)).status_code == 200, fitting
    sides.on_source(error["sql"])
    assert (await answer_to(statement="SELECT :old.id, :old.amount")).status_code == 200


async def test_handlers_of_errors_are_checked_and_kept_like_the_others(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    sides: Sides,
) -> None:  # fmt: skip
    make_audit(sides)
    user = sides.destination["user"]
    stream = await created(admin, registered)
    path = f"{STREAMS}/{stream['id']}"

    async def answer_to(client: httpx.AsyncClient, **handler: Any) -> httpx.Response:
        return await client.patch(path, json={"parameters": parameters({**SETTLE, **handler})}, headers=ANY)

    refused = await answer_to(admin)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "statement_handlers")
    assert 'relation "audit.refused" does not exist' in refused.json()["errors"][0]["message"]
    sides.on_destination(
        "CREATE TABLE audit.refused (id bigint, sqlstate text, constraint_name text, kind text, error text)",
        f"GRANT INSERT ON audit.refused TO {user}",
    )
    assert (await answer_to(operator)).status_code == 403
    assert (await answer_to(admin, statement="SELECT :error + 1")).status_code == 409, "it is text"
    assert (await answer_to(admin, operations=["UPDATE"], statement="SELECT :old.amount")).status_code == 409
    kept = await answer_to(admin)
    assert kept.status_code == 200, kept.text
    assert kept.json()["parameters"]["statement_handlers"] == [SETTLE]
    of_any = {"when": "error", "statement": "INSERT INTO audit.refused (kind, error) VALUES (:kind, :table || :error)"}
    answer = await admin.patch(path, json={"parameters": parameters(of_any, SETTLE)}, headers=ANY)
    assert answer.status_code == 200, answer.text
    wrong = await answer_to(admin, errors=["insert_exists"])
    assert "an SQLSTATE in upper case" in wrong.json()["errors"][0]["message"]
