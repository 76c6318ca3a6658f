"""Streams whose source's WAL is mined: how they are made, checked and told to the engine."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_preflight import checks_of, failed
from thalweg.cli import captures
from thalweg.inspection import mining
from thalweg.inspection.checks import Checklist
from thalweg.inspection.schemas import CheckSide, CheckStatus

ENGINE = Path(__file__).resolve().parents[3] / "engine" / "src"
MINED = {"capture_kind": "wal"}


def told(engine: EngineDouble) -> dict[str, Any]:
    return {stream["name"]: stream.get("capture_kind") for stream in engine.desired["streams"]}


async def test_the_engine_is_told_of_a_kind_that_is_not_the_default(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    only = {"rules": {"include": [{"schema": "public", "table": "orders"}]}}
    other = {"rules": {"include": [{"schema": "public", "table": "customers"}]}}
    plain = await created(admin, registered, **only)
    mined = await created(admin, registered, name="mined", **MINED, **other)
    assert (plain["capture_kind"], mined["capture_kind"]) == ("logical", "wal")

    async def is_told() -> bool:
        return told(engine) == {"shop to warehouse": None, "mined": "wal"}

    await eventually(is_told)
    shown = {stream["name"]: stream["capture_kind"] for stream in (await admin.get(STREAMS)).json()["items"]}
    assert shown == {"shop to warehouse": "logical", "mined": "wal"}
    entries = (await admin.get("/api/v1/audit")).json()["items"]
    kinds = [entry["after"]["capture_kind"] for entry in entries if entry["action"] == "streams_create"]
    assert kinds == ["wal", "logical"]


async def test_limits_are_parameters_to_users_and_members_to_the_engine(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    limits = {"staging_limit_mb": 64, "capture_memory_mb": 8}
    mined = await created(operator, registered, **MINED, parameters={**limits, "parallelism": 2})
    assert mined["parameters"] == {**limits, "parallelism": 2}

    def told_as(**members: Any) -> bool:
        streams = engine.desired["streams"]
        own = {name: streams[0][name] for name in limits if name in streams[0]} if streams else None
        return own == members and streams[0]["parameters"] == {"parallelism": 2}

    async def is_told() -> bool:
        return told_as(**limits)

    await eventually(is_told)
    path, force = f"{STREAMS}/{mined['id']}", {"If-Match": "*"}
    raised = await operator.patch(path, json={"parameters": {"capture_memory_mb": 512}}, headers=force)
    assert raised.status_code == 200 and raised.json()["effective_parameters"]["capture_memory_mb"] == 512

    async def is_raised() -> bool:
        return told_as(staging_limit_mb=64, capture_memory_mb=512)

    await eventually(is_raised)
    low = await operator.patch(path, json={"parameters": {"staging_limit_mb": 63}}, headers=force)
    assert low.status_code == 422 and "from 64 to 16777216 MiB" in low.text


async def test_an_archive_is_one_that_the_engine_offers(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    engine.wal_archives = ["main"]

    async def is_shown() -> bool:
        engines = (await operator.get("/api/v1/engines")).json()["items"]
        return [found["wal_archives"] for found in engines] == [["main"]]

    await eventually(is_shown)
    wrong = await operator.post(STREAMS, json=body_of(registered, **MINED, parameters={"wal_archive": "other"}))
    assert wrong.status_code == 409 and "has no archive other: it offers main" in wrong.text
    long = await operator.post(STREAMS, json=body_of(registered, **MINED, parameters={"wal_archive": "x" * 101}))
    assert long.status_code == 422 and "at most 100 printable characters" in long.text
    mined = await created(operator, registered, **MINED, parameters={"wal_archive": "main"})
    changed = await operator.patch(
        f"{STREAMS}/{mined['id']}", json={"parameters": {"wal_archive": "other"}}, headers={"If-Match": "*"}
    )
    assert changed.status_code == 409 and "has no archive other: it offers main" in changed.text
    assert changed.json()["errors"][0]["pointer"] == "/parameters/wal_archive"

    async def is_told() -> bool:
        return [stream.get("wal_archive") for stream in engine.desired["streams"]] == ["main"]

    await eventually(is_told)
    assert "wal_archive" not in engine.desired["streams"][0]["parameters"]


@pytest.mark.usefixtures("engine")
async def test_limits_go_to_no_engine_that_decodes(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    await created(operator, registered, parameters={"staging_limit_mb": 64})

    async def is_told() -> bool:
        return bool(engine.desired["streams"])

    await eventually(is_told)
    (stream,) = engine.desired["streams"]
    assert stream["parameters"] == {} and not {"staging_limit_mb", "capture_kind"} & stream.keys()


async def observed(operator: httpx.AsyncClient, stream: dict[str, Any]) -> str:
    """The stream's path, once its engine has told of it."""
    path = f"{STREAMS}/{stream['id']}"

    async def is_told() -> bool:
        return bool((await operator.get(path)).json()["positions"])

    await eventually(is_told)
    return path


async def test_the_kind_changes_and_what_it_waits_for(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    limits = {"staging_limit_mb": 64}
    stream = await created(admin, registered, parameters=limits)
    path, warehouse = await observed(admin, stream), stream["destinations"][0]["id"]
    assert stream["kind_change"] is None
    engine.kind_change = {"to": "wal", "position": "0/5A3C1F8", "waits_for": [warehouse]}
    changed = await admin.patch(path, json=MINED, headers={"If-Match": "*"})
    assert changed.status_code == 200, changed.text
    assert changed.json()["capture_kind"] == "wal" and changed.json()["rules"] == stream["rules"]

    async def is_under_way() -> bool:
        told_as = [{name: known.get(name) for name in ("capture_kind", *limits)} for known in engine.desired["streams"]]
        return told_as == [{**MINED, **limits}] and (await admin.get(path)).json()["kind_change"] == engine.kind_change

    await eventually(is_under_way)
    (entry,) = [
        entry for entry in (await admin.get("/api/v1/audit")).json()["items"] if entry["action"] == "streams_update"
    ]
    assert [entry[when]["capture_kind"] for when in ("before", "after")] == ["logical", "wal"]
    back = await admin.patch(path, json={"capture_kind": "logical"}, headers={"If-Match": "*"})
    assert back.status_code == 200 and back.json()["kind_change"] is None, "what the engine tells is of before"

    async def keeps_its_limits() -> bool:
        return [(known.get("capture_kind"), known.get("staging_limit_mb")) for known in engine.desired["streams"]] == [
            (None, 64)
        ]

    await eventually(keeps_its_limits)


async def test_an_engine_that_changes_no_kind(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    engine.knows_kind_changes = False
    path = await observed(operator, await created(operator, registered))
    refused = await operator.patch(path, json=MINED, headers={"If-Match": "*"})
    assert refused.status_code == 409 and "Upgrade the engine" in refused.text
    same = await operator.patch(path, json={"capture_kind": "logical"}, headers={"If-Match": "*"})
    assert same.status_code == 200, same.text


@pytest.mark.usefixtures("engine")
async def test_a_change_is_checked_as_a_new_stream_is(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    user = sides.source["user"]
    sides.on_source("CREATE TABLE odd (id int PRIMARY KEY, rights aclitem)", f"ALTER TABLE odd OWNER TO {user}")
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    refused = await operator.patch(path, json=MINED, headers={"If-Match": "*"})
    assert refused.status_code == 409 and "Types that can be mined" in refused.text
    assert (await operator.get(path)).json()["capture_kind"] == "logical"
    sides.on_source("ALTER TABLE odd DROP COLUMN rights")
    assert (await operator.patch(path, json=MINED, headers={"If-Match": "*"})).status_code == 200


@pytest.mark.usefixtures("engine")
async def test_the_kind_is_one_of_two(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    wrong = await operator.post(STREAMS, json=body_of(registered, name="b", capture_kind="trigger"))
    assert wrong.status_code == 422
    assert "/capture_kind" in wrong.text


@pytest.mark.usefixtures("engine")
async def test_ready_without_questions_of_plugins(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    mined = await checks_of(operator, registered, **MINED)
    assert failed(mined) == set()
    of_mining = {name for name in mined if name.startswith(("source:min", "source:full"))}
    assert of_mining == {
        "source:mining_primary", "source:mining_version", "source:mining_encoding", "source:mining_blocks",
        "source:mined_tables", "source:mined_types", "source:full_page_writes",
    }  # fmt: skip
    assert "source:output_plugin" not in mined
    logical = await checks_of(operator, registered)
    assert not of_mining & logical.keys() and "source:output_plugin" in logical
    # The slot of another stream that mines is no standby's.
    sides.on_source("SELECT pg_create_physical_replication_slot('thalweg_other')")
    sides.on_source("SELECT pg_create_physical_replication_slot('standby1')")
    try:
        found = [(await checks_of(operator, registered, **kind))["source:failover"] for kind in ({}, MINED)]
    finally:
        sides.on_source("SELECT pg_drop_replication_slot('thalweg_other')")
        sides.on_source("SELECT pg_drop_replication_slot('standby1')")
    assert all(check["status"] == "warning" and "(standby1)" in check["detail"] for check in found)
    assert "does not follow a failover" in found[1]["detail"]


@pytest.mark.usefixtures("engine")
async def test_tables_that_cannot_be_mined(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    user = sides.source["user"]
    sides.on_source(
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts DEFAULT",
        "CREATE TYPE mood AS ENUM ('good')",
        "CREATE DOMAIN moods AS mood[]",
        "CREATE DOMAIN documents AS jsonb",
        "CREATE TYPE pair AS (a int8range, b aclitem)",
        "CREATE DOMAIN pairs AS pair[]",
        "CREATE TABLE odd (id int PRIMARY KEY, fine moods, rights aclitem, old aclitem, many documents[], "
        "span datemultirange, made aclitem[] GENERATED ALWAYS AS (NULL) STORED, number numeric(5, 2)[], deep pairs)",
        "ALTER TABLE odd DROP COLUMN old",
        *(f"ALTER TABLE {table} OWNER TO {user}" for table in ("parts", "parts_1", "odd")),
    )
    checks = await checks_of(operator, registered, **MINED)
    assert failed(checks) == {"source:mined_tables", "source:mined_types"}
    assert checks["source:mined_tables"]["detail"].startswith("public.parts: ")
    assert checks["source:mined_types"]["detail"].startswith("public.odd.rights (aclitem), public.odd.deep (aclitem): ")
    refused = await operator.post(STREAMS, json=body_of(registered, **MINED))
    assert refused.status_code == 409 and "Types that can be mined" in refused.text
    assert failed(await checks_of(operator, registered)) == set()


@pytest.mark.usefixtures("engine")
async def test_whole_pages_and_their_cure(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    sides.cluster.execute("ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()")
    try:

        async def is_off() -> bool:
            return failed(await checks_of(operator, registered, **MINED)) == {"source:full_page_writes"}

        await eventually(is_off)
        assert failed(await checks_of(operator, registered)) == set()
        check = (await checks_of(operator, registered, **MINED))["source:full_page_writes"]
        sides.cluster.execute("CHECKPOINT")
        *on, checkpoint = check["sql"].splitlines()
        sides.cluster.execute(*on)

        async def is_off_at_the_checkpoint() -> bool:
            check = (await checks_of(operator, registered, **MINED))["source:full_page_writes"]
            return "was off at the last checkpoint" in check["detail"] and check["sql"] == checkpoint

        await eventually(is_off_at_the_checkpoint)
        sides.cluster.execute(checkpoint)
        assert failed(await checks_of(operator, registered, **MINED)) == set()
    finally:
        sides.cluster.execute("ALTER SYSTEM RESET full_page_writes", "SELECT pg_reload_conf()", "CHECKPOINT")


@pytest.mark.parametrize(
    ("position", "behind", "words"),
    [
        (None, [], "it is being prepared"),
        ("0/5A3C1F8", [], "changes to log mining at 0/5A3C1F8\n"),
        ("0/5A3C1F8", ["a"], "changes to log mining at 0/5A3C1F8, and waits for warehouse\n"),
    ],
)
def test_a_change_on_the_command_line(
    position: str | None, behind: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"to": "wal", "position": position, "waits_for": behind}
    destinations = [{"id": "a", "database": {"name": "warehouse"}}, {"id": "b", "database": {"name": "reports"}}]
    captures.print_capture({**MINED, "kind_change": change, "destinations": destinations})
    told = capsys.readouterr().out
    assert words in told and "captured by logical decoding" in told


def test_servers_that_cannot_be_mined() -> None:
    checklist = Checklist(CheckSide.SOURCE)
    server = {"major": 20, "version": "20.1", "full_page_writes": "on", "checkpoint_has_pages": True,
              "encoding": "LATIN1", "block_bytes": "16384"}  # fmt: skip
    mining._check_server(checklist, server, reads_standby=True)
    failures = {check.id: check for check in checklist.checks if check.status is CheckStatus.FAILED}
    assert failures.keys() == {"mining_primary", "mining_version", "mining_encoding", "mining_blocks"}
    assert all(check.cure and "ogical decoding" in check.cure for check in failures.values())
    assert "LATIN1" in failures["mining_encoding"].detail and "20.1" in failures["mining_version"].detail


def test_versions_and_types_are_those_of_the_engine() -> None:
    formats = (ENGINE / "wal" / "wal_format.cc").read_text()
    versions = {int(found) for found in re.findall(r"(?:\.version = |since_15\(0x\w+, )(\d+)", formats)}
    assert versions == set(mining.MAJORS)
    listed = (ENGINE / "mining" / "known_types.cc").read_text()
    assert [int(found) for found in re.findall(r"^ +\{(\d+), \{append_", listed, re.MULTILINE)] == list(mining.TYPES)
    of_extensions = re.findall(r'^ +\{"(\w+)", "(\w+)", append_', listed, re.MULTILINE)
    assert [".".join(found) for found in of_extensions] == list(mining.EXTENSION_TYPES)
