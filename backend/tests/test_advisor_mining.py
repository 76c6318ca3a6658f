"""Findings about log mining: the full staging, the archive that lags, images of pages in the WAL."""

from dataclasses import replace
from typing import Any

import pytest

from tests.test_advisor_analysis import RUNNING, analysed, recorded
from tests.test_advisor_waiting import share
from thalweg.advisor.analysis import PathView
from thalweg.advisor.finding import Finding
from thalweg.advisor.findings.clues import StreamFacts
from thalweg.advisor.findings.ranking import find
from thalweg.advisor.schemas import Verdict
from thalweg.advisor.streams import Condition
from thalweg.engine_client.error_codes import SIDES, ErrorCode, ErrorSide
from thalweg.inspection.performance import SourceFacts
from thalweg.inspection.sessions import Blocker
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.clock import now
from thalweg.live.schemas import ComponentSample, Sample
from thalweg.live.staging import BUILDER, FULL, SHIPMENT, StagedWal, staged_wal_of

GIB, MIB = 1 << 30, 1 << 20


def part(sub_component: str, state: str, gauges: dict[str, float], rates: dict[str, float]) -> ComponentSample:
    return ComponentSample(
        id=sub_component.split()[-1].lower(), type="CAPTURE", name="capture", sub_component=sub_component, server=None,
        state=state, lcrs_per_second=None, transactions_per_second=None, bytes_per_second=None, time_percent=None,
        counters={}, gauges=gauges, counter_rates=rates,
    )  # fmt: skip


def mined(
    name: str = "expensive_decode", *, state: str = "RECEIVING WAL", open_bytes: float = 0.0, wait: float = 0.0,
    images: float = 0.0, paused: bool = False,
) -> list[Sample]:  # fmt: skip
    """The recorded path, as if its log were mined. `images` of 10 MB of WAL a second."""
    gauges = {"staged_bytes": 10.0 * GIB, "staging_limit_bytes": 10.0 * GIB, "archive_wait_us": wait * 1e6}
    rates = {"mined_bytes": 10e6, "image_bytes": 10e6 * images}
    parts = [
        part(SHIPMENT, state, gauges, {}),
        part(BUILDER, "CAPTURING CHANGES", {"open_wal_bytes": open_bytes}, rates),
    ]
    own = share("destination", "IN MEMORY").model_copy(
        update={"status": "DISABLED" if paused else "ENABLED", "backlog": None}
    )
    return [
        sample.model_copy(update={"components": [*sample.components, *parts], "destinations": [own]})
        for sample in recorded(name)
    ]


def told(samples: list[Sample], condition: Condition = RUNNING, **facts: Any) -> tuple[PathView, dict[str, Finding]]:
    _, view = analysed(samples, condition)
    known = StreamFacts("source", "destination", {}, [], capture_kind=CaptureKind.WAL, archive="main", **facts)
    return view, {finding.code: finding for finding in find([view], {view.path.path.path_id: known}, 15.0)}


def with_error(code: ErrorCode) -> Condition:
    return Condition(
        "ENABLED", "ENABLED", "REPLICATING", SIDES.get(code, ErrorSide.SOURCE), "It is so.", error_code=code
    )


@pytest.mark.parametrize(
    ("name", "verdict", "stage", "code"),
    [
        ("staging_full", Verdict.HELD_UP, None, "staging_full"),
        ("archive_lags", Verdict.HELD_UP, None, "archive_lags"),
        ("images_after_checkpoints", Verdict.BOTTLENECK, "WAL SHIPMENT", "wal_images"),
    ],
)
def test_what_the_rig_has_recorded(name: str, verdict: Verdict, stage: str | None, code: str) -> None:
    view, found = told(recorded(name))
    row = view.bottleneck
    assert (row.verdict, row.sub_component_type, next(iter(found))) == (verdict, stage, code), row.explanation


@pytest.mark.parametrize("condition", [RUNNING, with_error(ErrorCode.SPILL_LIMIT_REACHED)])
def test_a_full_staging_holds_the_path_up_and_names_the_session_that_keeps_it(condition: Condition) -> None:
    session = Blocker(4711, "psql", "bob", "idle in transaction", 7200.0)
    source = SourceFacts(now(), oldest_open=session)
    view, found = told(mined(state=FULL, open_bytes=9.0 * GIB), condition, source=source)
    assert view.bottleneck.verdict is Verdict.HELD_UP
    assert "A transaction that is open at the source needs 9.0 GiB of it." in view.bottleneck.explanation
    finding = next(iter(found.values()))
    assert (finding.code, finding.is_cause, finding.severity) == ("staging_full", True, "critical")
    assert "The transaction of session 4711 (psql) at shop, open for 2 h, needs it." in finding.explanation
    assert (finding.cures[0].sql, finding.cures[0].database) == ("SELECT pg_terminate_backend(4711);", "shop")
    assert "staging_limit_mb (10.0 GiB)" in finding.cures[-1].text and "behind the limit" in finding.cures[-1].text
    _, found = told(mined(state=FULL, open_bytes=9.0 * GIB), condition)
    assert "backend_xid" in (found["staging_full"].cures[0].sql or ""), "who may see it, finds it"


def test_a_full_staging_that_a_destination_keeps_names_it() -> None:
    view, found = told(mined(state=FULL, open_bytes=1.0 * MIB))
    assert view.bottleneck.explanation.endswith("warehouse does not have it yet.")
    assert found["staging_full"].cures[0].text.startswith("Remove what keeps the destination from applying")
    _, found = told(mined(state=FULL, paused=True))
    assert "warehouse is paused and does not have it yet." in found["staging_full"].explanation
    assert found["staging_full"].cures[0].text.startswith("Resume the destination")


def test_a_full_staging_comes_with_what_limits_behind_it() -> None:
    """The staging is emptied by the destination: its slow stage is the cause."""
    view, found = told(mined("trigger", state=FULL))
    assert view.bottleneck.verdict is Verdict.BOTTLENECK
    assert (found["staging_full"].is_cause, found["staging_full"].severity) == (False, "warning")


def test_another_error_speaks_before_a_full_staging() -> None:
    view, found = told(mined(state=FULL), with_error(ErrorCode.DATABASE_UNREACHABLE))
    assert view.bottleneck.verdict is not Verdict.HELD_UP
    assert found["staging_full"].is_cause is False


@pytest.mark.parametrize("condition", [RUNNING, with_error(ErrorCode.WAL_ARCHIVE_FAILED)])
def test_an_archive_that_lags_holds_the_path_up(condition: Condition) -> None:
    view, found = told(mined(wait=600), condition)
    assert (view.bottleneck.verdict, next(iter(found))) == (Verdict.HELD_UP, "archive_lags")
    assert view.bottleneck.explanation.startswith("For 10 min the archive of the source's WAL has lacked what is next")
    evidence = {item.statistic: item.value for item in found["archive_lags"].evidence}
    assert (evidence["WAITED FOR THE NEXT SEGMENT"], evidence["wal_archive"]) == (600.0, "main")
    assert (found["archive_lags"].is_cause, found["archive_lags"].severity) == (True, "critical")
    assert "archive_lags" not in told(mined(wait=1))[1], "it may just not have been asked again"
    beside = told(mined(wait=600), with_error(ErrorCode.DATABASE_UNREACHABLE))[1]["archive_lags"]
    assert (beside.is_cause, beside.severity) == (False, "warning"), "another error speaks first"


def test_images_are_the_cause_where_capture_limits_and_most_of_the_wal_is_images() -> None:
    source = SourceFacts(now(), settings={"wal_compression": "off", "checkpoint_timeout": "30s"})
    view, found = told(mined(images=0.8), source=source)
    assert view.bottleneck.component_type == "CAPTURE"
    assert [code for code, finding in found.items() if finding.is_cause] == ["wal_images"]
    assert "capture_shipment" in found
    finding = found["wal_images"]
    assert "80 % of the mined WAL" in finding.explanation
    assert ("checkpoint_timeout", "30s") in [(item.statistic, item.value) for item in finding.evidence]
    assert "wal_compression = on" in (finding.cures[0].sql or "")
    source = replace(source, settings={"wal_compression": "lz4"})
    assert all(cure.sql is None for cure in told(mined(images=0.8), source=source)[1]["wal_images"].cures)
    _, few = told(mined(images=0.4))
    assert ("wal_images" in few, few["capture_shipment"].is_cause) == (False, True)


def test_images_are_only_told_where_something_else_limits() -> None:
    _, found = told(mined("trigger", images=0.8))
    assert (found["wal_images"].is_cause, found["wal_images"].severity) == (False, "information")
    assert next(iter(found)) != "wal_images"


def test_what_is_kept_for_searches_does_not_fill_the_staging() -> None:
    gauges = {"staged_bytes": 9.0 * GIB, "staging_limit_bytes": 10.0 * GIB}
    parts = [
        part(SHIPMENT, "RECEIVING WAL", gauges, {}),
        part(BUILDER, "CAPTURING CHANGES", {"kept_bytes": 8.0 * GIB, "open_wal_bytes": 5.0}, {}),
    ]
    assert staged_wal_of(parts) == StagedWal(1.0 * GIB, 10.0 * GIB, open_bytes=5.0)
