"""From older versions: stores, samples with former names, engines that tell in the old form, deletions under way."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import wait_for
from tests.test_fan_out import reports, two  # noqa: F401
from tests.test_history import row_of, sample_at
from tests.test_history_real import collecting
from tests.test_propagation import Enrolled, over, pair  # noqa: F401
from tests.test_units import ONLY
from thalweg.cli.administration import migrate
from thalweg.db.models import DatabaseRow, DestinationRow, StreamRow
from thalweg.engine_client.desired import desired_document
from thalweg.engine_client.documents import FORMER_ID, EngineStats, EngineStatus
from thalweg.history.document import decode, document_of, encode
from thalweg.history.outages import outages_between
from thalweg.history.series import resample, spans_of
from thalweg.kernel.context import Resources
from thalweg.kernel.settings import Settings
from thalweg.live.bus import EVENTS_KEY, Bus, samples_key
from thalweg.live.rates import Reading, sample_of
from thalweg.live.schemas import Backlog, Sample
from thalweg.workers.former_ids import poll_of_today
from thalweg.workers.outages import Replicated, note_stream
from thalweg.workers.polling import Poll

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def before(settings: Settings, *statements: str) -> None:
    """The store before destinations had former ids, changed so, and upgraded again."""
    config = Config()
    config.set_main_option("script_location", str(settings.migrations_directory))
    engine = create_engine(settings.store_url)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0018")
        connection.commit()
        for statement in statements:
            connection.exec_driver_sql(statement)
        connection.commit()
    engine.dispose()
    migrate(settings)


def owners(sample: dict[str, Any]) -> set[str | None]:
    return {part["destination_id"] for part in (*sample["components"], *sample["destinations"])}


async def test_a_destination_that_has_the_former_id_gets_another_one_everywhere(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,  # noqa: F811
    engine: EngineDouble,
    settings: Settings,
    resources: Resources,
) -> None:
    stream = await created(operator, registered, **two(registered, reports))
    observed = json.dumps({"destinations": [{"id": "default"}, {"id": "default2"}]})
    before(
        settings,
        "UPDATE destinations SET id = 'default' WHERE id = 'reports20'",
        f"UPDATE streams SET reached = '{{\"default\": \"0/10\"}}', observed = '{observed}'",
        "UPDATE operations SET destination_id = 'default'",
        "INSERT INTO outages (stream_id, destination_id, name, state, reason, began_at) "
        "SELECT id, 'default', 'Reports 2.0', 'ABORTED', '', now() FROM streams",
    )
    shown = (await operator.get(f"{STREAMS}/{stream['id']}")).json()
    assert [destination["id"] for destination in shown["destinations"]] == ["warehouse", "default3"]
    async with resources.sessions() as session:
        document = await desired_document(session, stream["capture_engine"]["id"], resources)
        assert document is not None
        assert [destination["id"] for destination in document["streams"][0]["destinations"]] == [
            "warehouse",
            "default3",
        ]
        query = text(
            "SELECT reached, observed, operations.destination_id, outages.destination_id "
            "FROM streams, operations, outages"
        )
        reached, seen, *ids = (await session.execute(query)).one()
        former = text("SELECT id, former_id FROM destinations ORDER BY ordinal")
        assert [tuple(row) for row in await session.execute(former)] == [("warehouse", None), ("default3", "default")]
    assert (reached, [destination["id"] for destination in seen["destinations"]]) == (
        {"default3": "0/10"},
        ["default3", "default2"],
    )
    assert ids == ["default3", "default3"]


async def test_what_an_upgraded_engine_tells_of_its_only_destination_is_that_ones(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    settings: Settings,
    resources: Resources,
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"

    async def stored(count: int) -> list[dict[str, Any]] | None:
        samples = (await operator.get(f"{path}/history/samples")).json()["samples"]
        return list(samples) if len(samples) >= count else None

    engine.recorded = []
    async with collecting(resources):
        await eventually(lambda: stored(3))
    known = await stored(3) or []
    before(settings)
    # It has not taken the next document yet, and has its memory since it began anew.
    engine.takes_documents = False
    engine.desired["streams"][0]["destinations"][0]["id"] = FORMER_ID
    last = datetime.fromisoformat(known[-1]["at"])
    for number in range(1, 6):
        engine.record(last + timedelta(milliseconds=100 * number))
    async with collecting(resources):
        samples = await eventually(lambda: stored(len(known) + 10))
        shown = await wait_for(operator, path, phase="REPLICATING")
    assert {owner for sample in samples for owner in owners(sample)} == {None, "warehouse"}
    assert samples[len(known) + 2]["lcrs_per_second"] == samples[-1]["lcrs_per_second"] == 1190
    assert shown["destinations"][0]["lcrs_per_second"] == 1190
    assert shown["destinations"][0]["instantiation"] is not None
    live = (await operator.get(f"{path}/samples")).json()["samples"]
    assert {owner for sample in live for owner in owners(sample)} == {None, "warehouse"}


def test_history_under_a_former_id_reads_like_todays() -> None:
    sample = sample_at(NOON + timedelta(seconds=1), 1234.5)
    high = {f"components.{ONLY}:reader.gauges.depth": 7.0, f"destinations.{ONLY}.lag.bytes": 9.0, "bytes": 1.0}
    today = {**document_of(sample), "high": high}
    former = json.loads(json.dumps(today).replace(f'"{ONLY}', '"default').replace(f".{ONLY}", ".default"))
    assert owners(former) == {None, "default"}
    assert decode(encode(former), {"default": ONLY}) == decode(encode(today))
    name = f"components.{ONLY}:server-1.lcrs_per_second"
    row = row_of(sample)
    old = type(row)(row.stream_id, row.engine_id, row.at, 1, encode(former))
    (series,) = resample(spans_of([old], {"default": ONLY}), [name], NOON, 1, 1)
    assert series.values == resample(spans_of([row]), [name], NOON, 1, 1)[0].values == [1234.5]


def with_former_names(document: Any) -> Any:
    if isinstance(document, list):
        return [with_former_names(item) for item in document]
    if not isinstance(document, dict):
        return document
    former = {"lag": "backlog", "backlog": "spilled"}
    return {former.get(name, name): with_former_names(value) for name, value in document.items()}


def sample_with_backlog() -> Sample:
    waiting = {"state": "ON DISK", "bytes": 512, "lcrs": 1, "frames": 1, "age_seconds": 1.0, "limit_bytes": 999}
    sample = sample_at(datetime.now(UTC), 1234.5)
    only = sample.destinations[0].model_copy(update={"backlog": Backlog.model_validate(waiting)})
    return sample.model_copy(update={"destinations": [only]})


def test_history_that_calls_the_lag_a_backlog_reads_like_todays() -> None:
    sample = sample_with_backlog()
    today = document_of(sample)
    own = f"destinations.{ONLY}"
    high = {"lag.bytes": 9.0, f"{own}.lag.bytes": 8.0, f"{own}.backlog.bytes": 7.0, f"components.{ONLY}:backlog.x": 6.0}
    former_high = {
        "backlog.bytes": 9.0, f"{own}.backlog.bytes": 8.0, f"{own}.spilled.bytes": 7.0,
        f"components.{ONLY}:backlog.x": 6.0,
    }  # fmt: skip
    former = {**with_former_names(today), "high": former_high}
    assert set(former["destinations"][0]) >= {"backlog", "spilled"}
    assert decode(encode(former)) == decode(encode({**today, "high": high}))


async def test_samples_in_redis_that_call_the_lag_a_backlog_read_like_todays(resources: Resources) -> None:
    sample = sample_with_backlog()
    today = sample.model_dump(mode="json", by_alias=True)
    former = json.dumps(with_former_names(today), separators=(",", ":"))
    await resources.redis.xadd(samples_key(sample.stream_id), {"data": former})
    await resources.redis.xadd(EVENTS_KEY, {"name": "stream.sample", "data": former})
    bus = Bus(resources.redis)
    assert await bus.latest_samples([sample.stream_id]) == {sample.stream_id: sample}
    assert await bus.recent_samples(sample.stream_id, 60) == [sample]
    assert [json.loads(document) for document in await bus.recent_documents(sample.stream_id, 60)] == [today]
    assert json.loads((await bus.events_after("0-0", None))[-1].data) == today


async def test_runs_of_the_advisor_that_call_the_lag_a_backlog_read_like_todays(
    settings: Settings, resources: Resources
) -> None:
    quoted = 'It said "backlog_bytes": 1.'
    summary = {"paths": [{"backlog_bytes": 5, "explanation": quoted}]}
    document = {
        "series": [{"backlog_bytes": [1, None]}],
        "analysis": {"path_statistics": [{"statistic_name": "BACKLOG"}], "path_bottlenecks": [{"explanation": quoted}]},
    }
    before(
        settings,
        "INSERT INTO advisor_runs (reason, requested_by, kept, scope, stream_ids, summary, document) "
        f"VALUES ('user', 'ann', false, '{{}}', '{{}}', '{json.dumps(summary)}', '{json.dumps(document)}')",
    )
    async with resources.sessions() as session:
        summary, document = (await session.execute(text("SELECT summary, document FROM advisor_runs"))).one()
    assert summary == {"paths": [{"lag_bytes": 5, "explanation": quoted}]}
    assert document["series"] == [{"lag_bytes": [1, None]}]
    assert document["analysis"]["path_statistics"] == [{"statistic_name": "REPLICATION LAG"}]
    assert document["analysis"]["path_bottlenecks"] == [{"explanation": quoted}]


def test_an_older_engine_tells_of_its_only_destination_as_of_the_stream() -> None:
    status, stats = example("status"), example("stats")
    (stream,) = status["streams"] = status["streams"][:1]
    (only,) = stream["destinations"]
    stream |= {name: only[name] for name in ("instantiation", "counted_since", "tables")} | {"destinations": []}
    stats["streams"][0]["destinations"] = []
    for part in stats["streams"][0]["components"]:
        part.pop("destination", None)
    poll = Poll(NOON, EngineStatus.model_validate(status), EngineStats.model_validate(stats), None)
    told = poll_of_today(poll, {stream["id"]: {FORMER_ID: ONLY}})
    today = Poll(
        NOON, EngineStatus.model_validate(example("status")), EngineStats.model_validate(example("stats")), None
    )

    def sample(poll: Poll) -> Any:
        assert poll.status is not None and poll.stats is not None
        return sample_of(stream["id"], None, Reading(NOON, 1, poll.stats.streams[0], poll.status.streams[0]))

    assert sample(told) == sample(today)
    assert told.status is not None
    (shown,) = told.status.streams[0].destinations
    assert (shown.id, shown.instantiation is not None, len(shown.tables)) == (ONLY, True, 2)


async def test_a_deletion_over_two_engines_that_the_old_version_began_removes_slot_and_publication(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
    settings: Settings,
    resources: Resources,
) -> None:
    """They were the receiving engine's, which has been told to drop them only once the capturing one had gone."""
    alpha, bravo = pair
    stream = await created(operator, registered, **over(pair))
    path = f"{STREAMS}/{stream['id']}"
    deleted = (await operator.delete(path)).json()["operation_id"]
    before(
        settings,
        "UPDATE destinations SET stage = 'RELEASED'",
        "INSERT INTO abandoned_streams (id, engine_id, name, definition_sealed, revision, abandoned_at) "
        "SELECT id, capture_engine_id, name, '', 1, now() FROM streams",
    )
    async with collecting(resources):
        await wait_for(operator, f"/api/v1/operations/{deleted}", state="succeeded")
    (told,) = [desired for document in alpha.double.documents for desired in document["streams"]][:1]
    assert (told["status"], "source" in told, "send_to" in told["destinations"][0]) == ("DROPPED", True, True)
    statuses = [desired["status"] for document in bravo.double.documents for desired in document["streams"]]
    assert list(dict.fromkeys(statuses)) == ["DISABLED", "DROPPED"]
    assert (await operator.get(path)).status_code == 404


async def test_what_was_given_up_before_streams_had_lists_is_told_in_todays_form(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
    resources: Resources,
) -> None:
    database = {"name": "warehouse", "conninfo": "host=b"}
    peer = {"engine": "engine-x", "host": "b", "port": 8644}
    common = {"name": "s", "status": "DROPPED", "force": True, "source": database, "tables": [], "parameters": {}}
    listed = {"id": "default", "name": "b", "status": "ENABLED", "force": False, "parameters": {}, "send_to": peer}
    lost = [
        {**common, "id": "aaaaaaaa", "destination": database},
        {**common, "id": "bbbbbbbb", "send_to": peer},
        {**common, "id": "cccccccc", "destination": database, "receive_from": {"engine": "e", "shared_capture": True}},
        {**common, "id": "dddddddd", "destinations": [listed]},
    ]
    async with resources.sessions() as session:
        for definition in lost:
            sealed = resources.secrets.seal(json.dumps(definition))
            values = {"id": definition["id"], "engine": pair[0].id, "sealed": sealed}
            insert = "INSERT INTO abandoned_streams (id, engine_id, name, definition_sealed, revision, abandoned_at) "
            await session.execute(text(insert + "VALUES (:id, :engine, 's', :sealed, 1, now())"), values)
        await session.commit()
    async with resources.sessions() as session:
        document = await desired_document(session, pair[0].id, resources)
    assert document is not None
    only = {"id": "only", "status": "ENABLED", "force": False, "backlog": False}
    assert [stream["destinations"] for stream in document["streams"]] == [
        [{**only, **database}], [{**only, "name": "engine-x", "send_to": peer}], [{**only, **database}],
        [{**listed, "id": "only", "backlog": True}],
    ]  # fmt: skip
    assert [set(stream) & {"destination", "send_to"} for stream in document["streams"]] == [set()] * 4
    assert document["streams"][2]["receive_from"] == {"engine": "e"}


async def test_a_dropped_destination_that_left_something_behind_is_no_outage(resources: Resources) -> None:
    error = {"code": "database_unreachable", "title": "The database cannot be reached", "message": "Left behind."}
    names = ("a", "b")
    row = StreamRow(
        id="k3j2h1g4", name="s",
        destinations=[DestinationRow(id=name, database=DatabaseRow(name=name)) for name in names],
    )  # fmt: skip
    dropped = {"id": "b", "status": "DROPPED", "error": error}
    after = {"status": "ENABLED", "error": None, "destinations": [{"id": "a", "status": "ENABLED"}, dropped]}
    async with resources.sessions() as session:
        for was in ({}, after, {}):
            await note_stream(session, row, was, after, NOON, timedelta(days=1), Replicated())
        assert await outages_between(session, row.id, [], NOON, NOON + timedelta(days=1)) == []


async def test_a_request_from_before_the_upgrade_is_neither_repeated_nor_to_be_guessed(
    operator: httpx.AsyncClient, settings: Settings, resources: Resources
) -> None:
    body = {"name": "deploy", "role": "viewer"}
    path, headers = "/api/v1/tokens", {"Idempotency-Key": "key-of-this-test"}
    assert (await operator.post(path, json=body, headers=headers)).status_code == 201
    before(settings, "UPDATE idempotency_keys SET request_hash = repeat('a', 64)")
    async with resources.sessions() as session:
        assert (await session.execute(text("SELECT request_hash FROM idempotency_keys"))).scalar_one() == ""
    again = await operator.post(path, json=body, headers=headers)
    assert (again.status_code, again.json()["code"]) == (422, "idempotency_key_reused")
    assert "before an upgrade" in again.json()["detail"]
    assert [token["name"] for token in (await operator.get(path)).json()["items"]].count("deploy") == 1
