"""Events of a stream's past: everybody who sees its charts sees them, all of them, and nothing but what happened."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from sqlalchemy import select, text

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from thalweg.db.audit_words import SENTENCES
from thalweg.db.models import AlertRow, AuditRow, EngineStartRow
from thalweg.features.history.events import CHANGES, RESTARTS
from thalweg.kernel.context import Resources
from thalweg.workers.collector import Collector

UNSEEN = {
    "stream_conflicts_export", "stream_conflicts_get", "stream_errors_dry_run", "stream_errors_get",
    "streams_test_rules",
}  # fmt: skip
"""Looks: nothing happens to the stream by them."""
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def events_of(client: httpx.AsyncClient, stream_id: str, **query: Any) -> list[dict[str, Any]]:
    """Page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await client.get(f"{STREAMS}/{stream_id}/history/events", params={**query, **cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["items"]) <= int(query.get("limit", 100))
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_every_action_on_a_stream_is_an_event_or_a_look() -> None:
    of_streams = {action for action in SENTENCES if action.startswith(("stream_", "streams_", "destinations_"))}
    assert of_streams == RESTARTS | CHANGES | UNSEEN


async def test_a_viewer_sees_what_was_done_and_by_whom_but_not_its_contents(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble, resources: Resources,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    assert (await operator.post(f"{path}:stop")).is_success
    errors = f"{path}/destinations/{stream['destinations'][0]['id']}/errors"
    assert (await operator.get(f"{errors}/1")).is_success
    async with resources.sessions() as session:
        for row in await session.scalars(select(AuditRow)):
            row.address, row.after = "203.0.113.9", {**(row.after or {}), "secret": "hush"}
        await session.commit()
    seen = await events_of(viewer, stream["id"])
    told = [(event["kind"], event["sentence"], event["actor_name"]) for event in seen]
    assert told == [("restart", "Stopped", "operator"), ("change", "Created", "operator")]
    assert seen == await events_of(admin, stream["id"])
    assert "203.0.113.9" not in str(seen) and "hush" not in str(seen)
    assert (await viewer.get("/api/v1/audit")).status_code == 403


async def test_earlier_starts_of_an_engine_are_remembered(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    collector: Collector,  # noqa: F811
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    enrolled = datetime.fromisoformat(engine.started_at)
    starts = [enrolled + timedelta(minutes=minute) for minute in (0, 7, 9)]
    for start in starts[1:]:
        engine.started_at = start.isoformat()

        async def noted(wanted: datetime = start) -> bool:
            return wanted in [row["at"] for row in await restarts()]

        async def restarts() -> list[dict[str, Any]]:
            around = {"since": (enrolled - timedelta(1)).isoformat(), "until": (enrolled + timedelta(1)).isoformat()}
            rows = await events_of(viewer, stream["id"], **around)
            return [{**row, "at": datetime.fromisoformat(row["at"])} for row in rows if row["kind"] == "restart"]

        await eventually(noted, 30)
    seen = [(row["at"], row["sentence"], row["actor_name"]) for row in await restarts()]
    assert seen == [(start, "Engine local started", None) for start in reversed(starts)]


async def test_a_range_has_all_of_its_events_in_pages_and_none_of_others(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    resources: Resources,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    other = "zzzzzzzz"
    async with resources.sessions() as session:
        engine_id = await session.scalar(text("SELECT id FROM engines"))
        assert engine_id is not None
        for minute in range(70):
            at = NOON + timedelta(minutes=minute)
            session.add(EngineStartRow(engine_id=engine_id, started_at=at))
            for target in (stream["id"], other):
                # All three sources have something at the same moment.
                session.add(AuditRow(
                    at=at, actor_name="ann", via="session", action="streams_stop", target_type="stream",
                    target_id=target, target_name="", request_id="",
                ))  # fmt: skip
                session.add(AlertRow(
                    rule="latency", subject_type="stream", subject_id=f"{target}{minute}", subject_name="",
                    stream_id=target, severity="warning", state="resolved", message="", evidence={}, pending_at=at,
                    fired_at=at, resolved_at=at, changed_at=at,
                ))  # fmt: skip
        await session.commit()
    around = {"since": (NOON + timedelta(minutes=5)).isoformat(), "until": (NOON + timedelta(minutes=65)).isoformat()}
    seen = await events_of(viewer, stream["id"], **around, limit=7)
    assert len({event["id"] for event in seen}) == len(seen) == 3 * 60
    times = [event["at"] for event in seen]
    assert times == sorted(times, reverse=True)
    assert {event["severity"] for event in seen if event["kind"] == "alert"} == {"warning"}
    assert await events_of(viewer, stream["id"], **around) == seen


async def test_a_cursor_of_no_list_is_refused(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    for cursor in ("abc", "Wzk5OTk5OTk5OTk5OTk5OTk5OSwgMSwgMV0"):
        answer = await viewer.get(f"{STREAMS}/{stream['id']}/history/events", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
