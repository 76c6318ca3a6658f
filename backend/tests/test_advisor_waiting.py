"""Paths that others hold up: sessions at a server, or another destination with a full backlog."""

from datetime import timedelta

import pytest

from tests.test_advisor_analysis import RUNNING, recorded
from thalweg.advisor.analysis import PathView, analyse
from thalweg.advisor.finding import Finding
from thalweg.advisor.findings.clues import StreamFacts
from thalweg.advisor.findings.ranking import find
from thalweg.advisor.schemas import Thresholds, Verdict
from thalweg.advisor.streams import Condition, DatabaseFacts, StreamInput
from thalweg.db.models import StreamRow
from thalweg.engine_client.error_codes import SIDES, ErrorCode, ErrorSide
from thalweg.features.advisor.gathering import waits_of
from thalweg.kernel.clock import now
from thalweg.live.schemas import Backlog, DestinationSample, Lag, LatencySample, Sample

NAMES = {"near": "warehouse", "far": "replica"}
MIB = 1 << 20


def wait(destination: str | None, pid: int, side: str = "destination") -> dict[str, object]:
    since = now() - timedelta(minutes=3)
    blocker = {
        "pid": pid, "user": "app", "application_name": "psql", "state": "idle in transaction", "since": since,
    }  # fmt: skip
    return {
        "side": side, "destination": destination, "database": NAMES.get(destination or "", "shop"),
        "statement": 'LOCK TABLE "public"."orders"', "since": since.isoformat(), "blockers": [blocker],
    }  # fmt: skip


def share(name: str, state: str) -> DestinationSample:
    backlog = Backlog(state=state, bytes=16 * MIB, lcrs=1, frames=1, age_seconds=1, limit_bytes=16 * MIB)
    return DestinationSample(
        destination_id=name, status="ENABLED", phase="REPLICATING", lcrs_per_second=0, transactions_per_second=0,
        bytes_per_second=0, backlog=backlog, error_queue_transactions=0, lag=Lag(bytes=1 << 30, seconds=60),
        latency=LatencySample(p50_ms=None, p99_ms=None, transactions=0),
    )  # fmt: skip


def fan_out(samples: list[Sample], conditions: dict[str, Condition]) -> tuple[dict[str, PathView], list[Finding]]:
    databases = {id_: DatabaseFacts(name, f"{id_}:1/{name}", "15.1") for id_, name in NAMES.items()}
    stream = StreamInput(
        "k3j2h1g4", "orders", samples, DatabaseFacts("shop", "a:1/shop", "15.1"), databases, {}, RUNNING, conditions
    )
    _, views = analyse([stream], Thresholds(), now())
    facts = {view.path.path.path_id: StreamFacts("source", "destination", {}, []) for view in views}
    return {view.path.path.destination_id: view for view in views}, find(views, facts, 15.0)


def starting(name: str, *documents: dict[str, object]) -> dict[str, Condition]:
    row = StreamRow(observed={"waits": list(documents)})
    return {name: Condition("ENABLED", "ENABLED", "INITIALIZING", waits=waits_of(row, name))}


def test_a_start_that_waits_at_a_server_says_behind_whom_and_how_to_end_it() -> None:
    views, found = fan_out(recorded("idle_source"), starting("near", wait("near", 4711), wait("far", 4712)))
    row = views["near"].bottleneck
    assert row.verdict is Verdict.WAITING
    assert row.explanation.startswith("It waits for 3 min at the destination warehouse behind server process 4711")
    assert "4712" not in row.explanation, "another destination's wait"
    (told,) = [finding for finding in found if finding.path_id == row.path_id]
    assert told.title == "Session 4711 (psql) at the destination warehouse keeps the path from starting"
    blocked = [entry.value for entry in told.evidence if entry.statistic == "BLOCKED BY"]
    (words,) = blocked
    assert str(words).startswith("session 4711 (psql) of app, idle in transaction for 18"), words
    assert (told.cures[0].sql, told.cures[0].database) == ("SELECT pg_terminate_backend(4711);", "warehouse")


def test_a_wait_at_the_source_is_ended_at_the_source() -> None:
    _, (told, *_) = fan_out(recorded("idle_source"), starting("near", wait(None, 4711, "source")))
    assert (told.code, told.cures[0].database) == ("start_blocked", "shop")


def test_a_prepared_transaction_has_no_session_to_end() -> None:
    _, (told, *_) = fan_out(recorded("idle_source"), starting("near", wait("near", 0)))
    assert told.title == "A prepared transaction at the destination warehouse keeps the path from starting"
    assert "pg_prepared_xacts" in (told.cures[0].sql or "")
    assert len(told.cures) == 1


def test_a_start_is_no_path_without_a_bottleneck() -> None:
    views, found = fan_out(recorded("idle_source"), starting("near"))
    assert (views["near"].bottleneck.verdict, views["near"].bottleneck.explanation) == (
        Verdict.STARTING, "It is starting.",
    )  # fmt: skip
    assert not [finding for finding in found if finding.path_id == views["near"].path.path.path_id]


@pytest.mark.parametrize(
    ("condition", "cure"),
    [
        (Condition("DISABLED", "DISABLED", "STOPPED", paused=True), "Resume replica, raise"),
        (Condition("ENABLED", "ABORTED", "STOPPED"), "Remove the cause that has stopped replica, then retry it, raise"),
        (Condition("ENABLED", "ENABLED", "REPLICATING"), "Remove what keeps replica from applying, raise"),
    ],
)
def test_a_path_is_held_up_by_the_full_backlog_of_another_destination(condition: Condition, cure: str) -> None:
    views, found = fan_out(held_back("FULL"), {"far": condition})
    row = views["near"].bottleneck
    assert (row.verdict, row.explanation) == (
        Verdict.HELD_UP,
        "The backlog of replica is full: until there is room, nothing more is captured, for any destination.",
    )
    (told,) = [finding for finding in found if finding.path_id == row.path_id]
    assert (told.code, told.title) == ("full_backlog_elsewhere", "The full backlog of replica holds the path up")
    assert (told.is_cause, told.component_id, told.id) == (True, None, f"{row.path_id}:{told.code}:far")
    (entry,) = told.evidence
    assert (entry.subject, entry.value, entry.unit, entry.threshold) == ("replica", 16 * MIB, "BYTES", 16 * MIB)
    assert told.cures[0].text.startswith(cure)
    assert "queue_spill_limit_mb" in told.cures[0].text
    assert "full_backlog_elsewhere" not in {finding.code for finding in found if finding is not told}, "it is far's own"


def test_a_backlog_that_is_not_full_holds_nothing_up() -> None:
    views, found = fan_out(held_back("ON DISK"), {})
    assert views["near"].bottleneck.verdict is not Verdict.HELD_UP
    assert {"full_backlog", "full_backlog_elsewhere"}.isdisjoint(finding.code for finding in found)


def held_back(state: str) -> list[Sample]:
    """Capture is held back, and so is the backlog of the one destination."""
    held = []
    for sample in recorded("idle_source"):
        parts = [
            part
            if part.time_percent is None or part.type != "CAPTURE"
            else part.model_copy(
                update={
                    "time_percent": part.time_percent.model_copy(
                        update=dict.fromkeys(type(part.time_percent).model_fields, 0.0) | {"flow_control": 100.0}
                    )
                }
            )
            for part in sample.components
        ]
        shares = [share("near", "IN MEMORY"), share("far", state)]
        held.append(sample.model_copy(update={"components": parts, "destinations": shares}))
    return held


def full(name: str) -> list[Sample]:
    """A path with a bottleneck in apply, whose destination's backlog is full."""
    return [
        sample.model_copy(
            update={
                "components": [
                    part if part.destination_id is None else part.model_copy(update={"destination_id": "far"})
                    for part in sample.components
                ],
                "destinations": [share("near", "IN MEMORY"), share("far", "FULL")],
            }
        )
        for sample in recorded(name)
    ]


@pytest.mark.parametrize(
    ("name", "limit"), [("trigger", " APPLY SERVER is 75 % occupied over 4 threads"), ("idle_source", "")]
)
def test_a_full_backlog_of_its_own_is_no_trouble_of_the_engine(name: str, limit: str) -> None:
    spilled = ErrorCode.SPILL_LIMIT_REACHED
    condition = Condition(
        "ENABLED", "ENABLED", "REPLICATING", error_code=spilled, error_side=SIDES[spilled], error_message="It is full."
    )
    views, found = fan_out(full(name), {"far": condition})
    row = views["far"].bottleneck
    told = "The backlog of replica is full: until there is room, nothing more is captured, for any destination."
    assert (row.verdict, row.explanation.startswith(told + limit)) == (Verdict.HELD_UP, True), row.explanation
    (finding,) = [candidate for candidate in found if candidate.path_id == row.path_id]
    assert (finding.code, finding.title) == ("full_backlog", "The full backlog of replica holds the path up")
    assert finding.cures[0].text.startswith(
        "Remove what keeps replica from applying, raise its queue_spill_limit_mb, or drop replica from the stream."
    )


def test_another_error_speaks_before_a_full_backlog() -> None:
    lost = Condition("ENABLED", "ENABLED", "RETRYING", error_side=ErrorSide.DESTINATION, error_message="No answer.")
    views, _ = fan_out(full("idle_source"), {"far": lost})
    assert views["far"].bottleneck.verdict is Verdict.DESTINATION_DOWN
