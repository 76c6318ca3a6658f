"""Preflight: each check that fails names its cure, and the cure as SQL works."""

from collections.abc import Generator
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.support.engine_double import EngineDouble, example
from tests.support.servers import Cluster, start_cluster
from thalweg.inspection.preflight import preflight_of
from thalweg.inspection.removal import remove_stream_objects
from thalweg.inspection.target import Target
from thalweg.kernel.models import Check, CheckSide, CheckStatus
from thalweg.workflows.stream_preparation import Places, not_ready

pytestmark = pytest.mark.usefixtures("engine")
ALL = {"include": [{"schema": "public", "table": "*"}]}


async def checks_of(client: httpx.AsyncClient, ids: dict[str, str], **more: Any) -> dict[str, dict[str, Any]]:
    body = {"source_id": ids["source"], "destinations": [{"database_id": ids["destination"]}], "rules": ALL, **more}
    answer = await client.post("/api/v1/preflights", json=body)
    assert answer.status_code == 200, answer.text
    checks = answer.json()["checks"]
    stops = {"failed", "consent"}
    assert answer.json()["ready"] == all(check["status"] not in stops or check["accepted"] for check in checks)
    for check in checks:
        assert check["status"] == "ok" or check["cure"], check
        name = "shop" if ids[check["side"]] == ids["source"] else "warehouse"
        assert (check["sql_at"] or "").partition(" (")[0] == (name if check["sql"] else ""), check
    return {f"{check['side']}:{check['id']}": check for check in checks}


def failed(checks: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, check in checks.items() if check["status"] == "failed"}


async def test_ready(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    checks = await checks_of(operator, registered)
    assert failed(checks) == set()
    assert "2 tables will be created" in checks["destination:schema_create"]["detail"]


async def test_a_standby_that_keeps_no_copy_of_the_slot_is_told_of(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    assert (await checks_of(operator, registered))["source:failover"]["status"] == "ok"
    sides.on_source("SELECT pg_create_physical_replication_slot('standby1')")
    try:
        found = (await checks_of(operator, registered))["source:failover"]
    finally:
        sides.on_source("SELECT pg_drop_replication_slot('standby1')")
    assert found["status"] == "warning" and "standby1" in found["detail"] and "copied again" in found["detail"]
    if found["sql"]:  # from PostgreSQL 17 on
        assert found["sql"] == 'ALTER SYSTEM SET synchronized_standby_slots = "standby1"'


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
    assert checks["source:table_select"]["sql"] is checks["source:row_security"]["sql"] is None, "ownership cures them"
    for name in failed(checks):
        if checks[name]["sql"]:
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
    sides.on_source(
        "SELECT lo_create(0)",
        "CREATE TABLE odds (id serial PRIMARY KEY, v text) WITH (fillfactor = 50)",
        f"ALTER TABLE odds OWNER TO {sides.source['user']}",
        "COMMENT ON COLUMN odds.v IS 'words'",
        "GRANT SELECT ON odds TO PUBLIC",
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER audit AFTER INSERT ON odds EXECUTE FUNCTION nothing()",
        "CREATE POLICY mine ON odds USING (true)",
        "CREATE STATISTICS odds_both ON id, v FROM odds",
        "ALTER TABLE odds ALTER v SET STORAGE EXTERNAL",
        "GRANT USAGE ON SEQUENCE odds_id_seq TO PUBLIC",
        "CREATE TABLE ends (id int PRIMARY KEY, v text)",
        "ALTER TABLE ends SET (toast.autovacuum_enabled = off)",
        "CREATE INDEX ends_length ON ends (length(v))",
        "ALTER INDEX ends_length ALTER COLUMN 1 SET STATISTICS 500",
        "CREATE SEQUENCE ends_numbers OWNED BY ends.id",
        "COMMENT ON SEQUENCE ends_numbers IS 'counts'",
        f"ALTER TABLE ends OWNER TO {sides.source['user']}",
    )
    checks = await checks_of(operator, registered)
    assert checks["source:large_objects"]["status"] == "warning"
    check = checks["destination:left_out"]
    assert (check["status"], check["accepted"]) == ("consent", False)
    assert check["items"] == [
        "comments: public.odds, public.ends", "extended statistics: public.odds (odds_both)",
        "grants: public.odds (PUBLIC)", "grants on sequences: public.odds (odds_id_seq)",
        "row-level security: public.odds (mine)", "statistics targets: public.ends (ends_length)",
        "storage and compression of columns: public.odds (v)", "storage parameters: public.odds, public.ends",
        "triggers: public.odds (audit)",
        "values of sequences: public.odds (odds_id_seq), public.ends (ends_numbers)",
    ]  # fmt: skip
    accepted = await checks_of(operator, registered, accept=[check["consent"]])
    assert accepted["destination:left_out"]["accepted"]
    sides.on_source("COMMENT ON TABLE orders IS 'one more'")
    again = await checks_of(operator, registered, accept=[check["consent"]])
    assert not again["destination:left_out"]["accepted"], "only what was shown is accepted"
    sides.on_destination(*(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)" for name in ("odds", "ends", "orders")))
    assert (await checks_of(operator, registered))["destination:left_out"]["status"] == "ok"


async def test_consents_are_asked_for_and_kept(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], sides: Sides,
    engine: EngineDouble,
) -> None:  # fmt: skip
    sides.on_source("COMMENT ON TABLE orders IS 'what was sold'")
    body = {
        "name": "sold", "source_id": registered["source"],
        "destinations": [{"database_id": registered["destination"]}], "rules": ALL,
    }  # fmt: skip
    refused = await operator.post("/api/v1/streams", json=body)
    assert refused.status_code == 409, refused.text
    assert "left_out:" in refused.json()["cure"]
    made = await operator.post("/api/v1/streams", json={**body, "accept": ["left_out"]})
    assert made.status_code == 202, made.text
    entries = (await admin.get("/api/v1/audit")).json()["items"]
    (entry,) = (item for item in entries if item["action"] == "streams_create")
    assert "comments: public.orders" in entry["after"]["accepted"][0]


async def test_what_the_engine_finds_is_told(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides, engine: EngineDouble
) -> None:
    engine.rehearsal_problems = example("rehearsal")["problems"]
    checks = await checks_of(operator, registered)
    told = checks["destination:definitions"]
    assert told["status"] == "failed"
    assert told["items"] == ['The enum "public"."mood" lacks the label \'sad\' at the destination.']
    assert "ADD VALUE 'sad'" in told["sql"]
    told = checks["destination:left_out_there"]
    assert told["status"] == "consent"
    assert told["items"] == ['default of id of "public"."orders": function uuidv7() does not exist.']
    assert engine.rehearsed["tables"] == [{"schema": "public", "table": name} for name in ("customers", "orders")]
    assert f"dbname={sides.destination['dbname']}" in engine.rehearsed["destination"]["conninfo"]


async def test_without_an_engine_nothing_is_ready(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str]
) -> None:
    (engine,) = (await admin.get("/api/v1/engines")).json()["items"]
    assert (await admin.delete(f"/api/v1/engines/{engine['id']}", headers={"If-Match": "*"})).status_code < 300
    checks = await checks_of(operator, registered)
    assert failed(checks) == {"destination:definitions"}
    assert "Enrol one" in checks["destination:definitions"]["cure"]


async def test_inheritance_is_told(operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides) -> None:
    user = sides.source["user"]
    sides.on_source(
        "CREATE TABLE animals (id int PRIMARY KEY)", "CREATE TABLE cats (PRIMARY KEY (id)) INHERITS (animals)",
        f"ALTER TABLE animals OWNER TO {user}", f"ALTER TABLE cats OWNER TO {user}",
    )  # fmt: skip
    check = (await checks_of(operator, registered))["source:inheritance"]
    assert (check["status"], check["items"]) == ("consent", ["public.cats inherits from public.animals"])


@pytest.mark.parametrize(
    ("source", "destination", "status"),
    [
        ("UTF8", "LATIN1", "consent"), ("LATIN1", "UTF8", "ok"), ("SQL_ASCII", "UTF8", "consent"),
        ("EUC_JP", "EUC_JP", "ok"), ("EUC_JP", "EUC_KR", "consent"), ("UTF8", "SQL_ASCII", "warning"),
    ],
)  # fmt: skip
async def test_encodings(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, cluster: Cluster, source: str, destination: str, status: str
) -> None:
    ids = {}
    for side, encoding in (("source", source), ("destination", destination)):
        name = f"in_{encoding.lower()}_{side}"
        cluster.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING {encoding} LOCALE 'C' STRATEGY file_copy")
        if side == "source":
            cluster.execute("CREATE TABLE orders (id int PRIMARY KEY)", dbname=name)
        body = {"name": name, "host": "127.0.0.1", "port": cluster.port, "dbname": name, "user": "postgres"}
        ids[side] = (await admin.post("/api/v1/databases", json=body)).json()["id"]
    check = (await checks_of(operator, ids))["destination:encoding"]
    assert (check["status"], source in check["detail"]) == (status, True), check
    for side, encoding in (("source", source), ("destination", destination)):
        cluster.execute(f"DROP DATABASE in_{encoding.lower()}_{side} WITH (FORCE)")


async def test_another_order_of_texts_warns(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides, cluster: Cluster
) -> None:
    cluster.execute("CREATE DATABASE ordered TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'und' LOCALE 'C.UTF-8'")
    body = {"name": "ordered", "host": "127.0.0.1", "port": cluster.port, "dbname": "ordered", "user": "postgres"}
    ordered = (await operator.post("/api/v1/databases", json=body)).json()["id"]
    check = (await checks_of(operator, {**registered, "destination": ordered}))["destination:collation"]
    assert (check["status"], "und (ICU)" in check["detail"]) == ("warning", True)
    cluster.execute("DROP DATABASE ordered WITH (FORCE)")


async def test_a_unique_index_without_nulls_comes_before_full(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    user = sides.source["user"]
    sides.on_source(
        "CREATE TABLE coded (code text NOT NULL UNIQUE, v int)", "CREATE TABLE loose (code text UNIQUE, v int)",
        "CREATE TABLE late (id int PRIMARY KEY DEFERRABLE)",
        "CREATE TABLE parts (id int NOT NULL, v int) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9)",
        "CREATE UNIQUE INDEX parts_1_id ON parts_1 (id)",
        *(f"ALTER TABLE {table} OWNER TO {user}" for table in ("coded", "loose", "late", "parts", "parts_1")),
    )  # fmt: skip
    check = (await checks_of(operator, registered))["source:table_keys"]
    assert check["sql"].splitlines() == [
        'ALTER TABLE "public"."coded" REPLICA IDENTITY USING INDEX "coded_code_key";',
        'ALTER TABLE "public"."late" REPLICA IDENTITY FULL;',
        'ALTER TABLE "public"."loose" REPLICA IDENTITY FULL;',
        'ALTER TABLE "public"."parts_1" REPLICA IDENTITY USING INDEX "parts_1_id";',
    ]
    sides.on_source(*check["sql"].splitlines())
    assert failed(await checks_of(operator, registered)) == set()


async def test_updates_may_be_given_up_of_tables_without_a_key(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides, engine: EngineDouble
) -> None:
    sides.on_source(
        "CREATE TABLE notes (body text)", "CREATE TABLE loose (code text UNIQUE, v int)",
        "CREATE TABLE parts (id int) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9)",
        *(f"ALTER TABLE {table} OWNER TO {sides.source['user']}" for table in ("notes", "loose", "parts", "parts_1")),
    )  # fmt: skip
    checks = await checks_of(operator, registered)
    assert failed(checks) == {"source:table_keys"} and "source:inserts_only" not in checks
    assert "inserts_only of the rules" in checks["source:table_keys"]["cure"]

    given_up = [{"schema": "public", "table": table} for table in ("notes", "loose", "parts", "orders", "gone")]
    rules = {**ALL, "inserts_only": given_up}
    checks = await checks_of(operator, registered, rules=rules)
    assert failed(checks) == set()
    told = checks["source:inserts_only"]
    assert told["status"] == "warning"
    said = told["detail"].split(".")
    assert "public.loose, public.notes, public.orders, public.parts: updates and deletes stay at" in told["detail"]
    assert "public.loose, public.orders: a value of a unique key" in told["detail"], said
    assert "public.parts: PostgreSQL turns an update that moves a row" in told["detail"]
    assert "public.orders: the rows can be identified" in told["detail"]
    assert "public.gone: the rules choose no table of that name" in told["detail"]
    sent = {table["table"]: table.get("inserts_only", False) for table in engine.rehearsed["tables"]}
    assert sent == {"customers": False, "loose": True, "notes": True, "orders": True, "parts": True}

    only_one = {**ALL, "inserts_only": given_up[:1]}
    checks = await checks_of(operator, registered, rules=only_one)
    assert failed(checks) == {"source:table_keys"}
    assert "public.loose" in checks["source:table_keys"]["detail"]
    assert "public.notes" not in checks["source:table_keys"]["detail"]

    preview = await operator.post(
        "/api/v1/streams:preview-tables", json={"source_id": registered["source"], "rules": only_one}
    )
    told_of = {table["table"]: table for table in preview.json()["tables"]}
    flags = {name: (table["identified"], table["inserts_only"], table["replicable"]) for name, table in told_of.items()}
    assert flags["notes"] == (False, True, True)
    assert flags["loose"] == flags["parts"] == (False, False, False)
    assert flags["orders"] == (True, False, True)


async def test_rules_that_choose_nothing(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    rules = {"include": [{"schema": "Public", "table": "*"}]}
    checks = await checks_of(operator, registered, rules=rules)
    assert failed(checks) == {"source:tables"}
    of_tables = {"table_keys", "table_select", "inheritance", "existing_tables", "table_write", "left_out"}
    assert not of_tables & {name.partition(":")[2] for name in checks}, "nothing is well with no table"


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


async def test_a_schema_stands_once_in_the_cure_of_several_definitions(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    schema = 'CREATE SCHEMA IF NOT EXISTS "fn";\nGRANT CREATE, USAGE ON SCHEMA "fn" TO "thalweg";'
    body = 'CREATE FUNCTION fn.g() RETURNS void LANGUAGE sql\nAS $$\nCREATE SCHEMA IF NOT EXISTS "fn";\n$$;'
    engine.rehearsal_problems = [
        {"outcome": "refused", "part": "extension", "table": "", "name": name, "message": f"It lacks {name}.",
         "sqlstate": "", "statement": "", "cure": "Create it.", "cure_sql": f"{schema}\n{statement}"}
        for name, statement in (("citext", 'CREATE EXTENSION "citext" SCHEMA "fn";'), ("fn.g()", body))
    ]  # fmt: skip
    found = (await checks_of(operator, registered))["destination:definitions"]
    assert found["sql"] == f'{schema}\nCREATE EXTENSION "citext" SCHEMA "fn";\n{body}'


async def test_missing_extensions_have_one_cure_in_their_order(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    def lack(outcome: str, name: str, schema: str, cure: str) -> dict[str, str]:
        made = f'CREATE SCHEMA IF NOT EXISTS "{schema}";\n' if schema != "public" else ""
        sql = f'{made}CREATE EXTENSION "{name}" SCHEMA "{schema}";'
        return {
            "outcome": outcome, "part": "extension", "table": "", "name": name, "message": f"It lacks {name}.",
            "sqlstate": "", "statement": "", "cure": cure, "cure_sql": sql,
        }  # fmt: skip

    create = "Create the extension at the destination."
    install = "Install the extension's package on the destination's server, then create the extension."
    engine.rehearsal_problems = [
        lack("refused", "postgis_raster", "public", install), lack("left_out", "citext", "public", create),
        lack("refused", "postgis", "gis", install),
    ]  # fmt: skip
    checks = await checks_of(operator, registered)
    found = checks["destination:definitions"]
    assert found["sql"].splitlines() == [
        'CREATE EXTENSION "citext" SCHEMA "public";', 'CREATE SCHEMA IF NOT EXISTS "gis";',
        'CREATE EXTENSION "postgis" SCHEMA "gis";', 'CREATE EXTENSION "postgis_raster" SCHEMA "public";',
    ]  # fmt: skip
    assert found["cure"] == (
        "Install the packages of postgis and postgis_raster on the destination's server, then create the 3 extensions "
        "at the destination, in this order."
    )
    assert found["items"] == ["It lacks citext.", "It lacks postgis.", "It lacks postgis_raster."]
    assert checks["destination:left_out_there"]["status"] == "ok"


async def test_what_calls_code_is_not_tried_and_the_check_says_so(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    told = '"public"."orders" (constraint checked) calls public.f(integer)'
    blank = dict.fromkeys(("sqlstate", "statement", "cure", "cure_sql"), "")
    engine.rehearsal_problems = [
        {"outcome": "not_tried", "part": "constraint checked", "table": '"public"."orders"',
         "name": "public.f(integer)", "message": told, **blank},
    ]  # fmt: skip
    found = (await checks_of(operator, registered))["destination:definitions"]
    assert found["status"] == "warning"
    assert told in found["detail"]


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


async def test_bookkeeping_in_which_somebody_else_has_a_hand(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    user = sides.destination["user"]
    stranger = f"{user}_stranger"
    sides.on_destination(
        f"CREATE ROLE {stranger}", f"CREATE SCHEMA thalweg AUTHORIZATION {user}",
        "CREATE TABLE thalweg.stream (stream_id text)", f"ALTER TABLE thalweg.stream OWNER TO {stranger}",
    )  # fmt: skip
    checks = await checks_of(operator, registered)
    assert failed(checks) == {"destination:bookkeeping_schema"}
    assert f"table thalweg.stream belongs to {stranger}" in checks["destination:bookkeeping_schema"]["detail"]
    there = {name: sides.destination[name] for name in ("host", "port", "dbname", "user", "password")}
    (left,) = await remove_stream_objects("lost", None, [Target(**there, sslmode="prefer")], 10)
    assert f"table thalweg.stream belongs to {stranger}" in left
    sides.on_destination("DROP SCHEMA thalweg CASCADE", f"DROP ROLE {stranger}")


async def test_a_role_of_the_bookkeepings_name(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """By PostgreSQL's default search_path what it creates lands among the engine's tables."""
    password = sides.destination["password"]
    sides.on_destination(
        f"CREATE ROLE thalweg LOGIN PASSWORD '{password}' IN ROLE {sides.destination['user']}",
        "GRANT SET ON PARAMETER session_replication_role TO thalweg",
    )
    try:
        changed = await admin.patch(
            f"/api/v1/databases/{registered['destination']}", json={"user": "thalweg", "password": password},
            headers={"If-Match": "*"},
        )  # fmt: skip
        assert changed.status_code == 200, changed.text
        check = (await checks_of(operator, registered))["destination:search_path"]
        assert check["status"] == "warning"
        sides.on_destination(check["sql"])
        assert "destination:search_path" not in await checks_of(operator, registered)
    finally:
        sides.on_destination("DROP OWNED BY thalweg CASCADE", "DROP ROLE thalweg")


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
    checks = await checks_of(operator, registered)
    assert {"source:table_keys", "destination:connection"} <= failed(checks)
    assert checks["source:table_keys"]["sql_at"].endswith(f"/{sides.source['dbname']})")
    assert checks["destination:connection"]["sql_at"].endswith("/postgres)")
    body = {
        "name": "s",
        "source_id": registered["source"],
        "destinations": [{"database_id": registered["destination"]}],
    }
    refused = (await operator.post("/api/v1/streams", json={**body, "rules": ALL})).json()
    for name in ("source:table_keys", "destination:connection"):
        assert f"-- At the {name.partition(':')[0]} {checks[name]['sql_at']}:\n{checks[name]['sql']}" in refused["sql"]


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
        assert checks[name]["sql_at"] == f"poor (127.0.0.1:{poor_cluster.port}/postgres)"
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
    body["rules"] = {"include": [{"schema": "public", "table": "measured"}]}
    assert (await operator.post("/api/v1/streams:preview-tables", json=body)).json()["rows_estimated"] is None


def test_consent_to_the_same_text_at_two_destinations_is_asked_for_once() -> None:
    check = Check(
        id="left_out", side=CheckSide.DESTINATION, title="What the copy leaves out", status=CheckStatus.CONSENT,
        detail="Triggers.", cure=None, sql=None, consent="left_out:4f2a",
    )  # fmt: skip
    cure = not_ready(preflight_of([check, check]), "Nothing was created.", Places({})).cure or ""
    assert cure.count("left_out:4f2a") == 1
    assert "--accept" in cure


def test_a_refusal_says_at_which_of_several_destinations() -> None:
    filled = Check(
        id="empty_tables", side=CheckSide.DESTINATION, title="Empty tables", status=CheckStatus.FAILED,
        detail="public.t: they already have rows.", cure="Truncate them.", sql=None,
    )  # fmt: skip
    both = preflight_of([filled.model_copy(update={"database_id": at}) for at in ("one", "two")])
    refused = not_ready(both, "Nothing was changed.", Places({"": "/rules"}, names={"one": "hd1", "two": "hd2"}))
    assert "Empty tables of the destination hd1; Empty tables of the destination hd2." in refused.detail
    assert [error.message for error in refused.errors] == [
        f"Empty tables at {name}: public.t: they already have rows." for name in ("hd1", "hd2")
    ]
    alone = not_ready(preflight_of([filled]), "Nothing was changed.", Places({"": "/rules"}, names={"one": "hd1"}))
    assert [error.message for error in alone.errors] == ["Empty tables: public.t: they already have rows."]
