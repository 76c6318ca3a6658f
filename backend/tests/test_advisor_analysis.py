"""The analysis on samples that the rig recorded of real paths, each slowed by a real cause, and on changed copies."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from thalweg.advisor.analysis import PathView, analyse, with_locks
from thalweg.advisor.schemas import Analysis, Thresholds, Verdict
from thalweg.advisor.streams import Condition, DatabaseFacts, StreamInput
from thalweg.cli.commands.advisor import _without_figures
from thalweg.engine_client.error_codes import ErrorSide
from thalweg.features.advisor.presentation import STATISTICS, path_lines, series_of
from thalweg.kernel.clock import now
from thalweg.live.schemas import ComponentType, DestinationSample, Lag, LatencySample, Sample

RECORDINGS = Path(__file__).parent / "recordings"
RUNNING = Condition("ENABLED", "ENABLED", "REPLICATING")


def recorded(name: str) -> list[Sample]:
    return [Sample.model_validate(item) for item in json.loads((RECORDINGS / f"{name}.json").read_text())]


def analysed(
    samples: list[Sample], condition: Condition = RUNNING, thresholds: Thresholds | None = None
) -> tuple[Analysis, PathView]:
    stream = StreamInput(
        "k3j2h1g4", "orders", samples, DatabaseFacts("shop", "a:1/shop", "15.1"),
        {"destination": DatabaseFacts("warehouse", "b:1/warehouse", "15.1")}, {}, condition,
    )  # fmt: skip
    analysis, (view,) = analyse([stream], thresholds or Thresholds(), now())
    return analysis, view


@pytest.mark.parametrize(
    ("name", "stage", "event"),
    [
        ("missing_index", "APPLY SERVER", None),
        ("trigger", "APPLY SERVER", "EXECUTE"),
        ("trigger_behind_waits", "APPLY SERVER", "DEPENDENCY"),
        ("lock_contention", "APPLY SERVER", "EXECUTE"),
        ("hot_row", "APPLY SERVER", "DEPENDENCY"),
        ("commit_order", "APPLY SERVER", "COMMIT ORDER"),
        ("tiny_transactions", "APPLY COORDINATOR", "CPU"),
        ("spilling", "APPLY READER", "DISK"),
        ("slow_fsync", "APPLY SERVER", None),
        ("expensive_decode", "CAPTURE", "SOURCE"),
        ("rule_evaluation", "CAPTURE", "CPU"),
        ("network_limit", "PROPAGATION SENDER", "NETWORK"),
        ("slow_receiver", "PROPAGATION RECEIVER", "CPU"),
    ],
)
def test_bottleneck_of_recorded_paths(name: str, stage: str, event: str | None) -> None:
    _, view = analysed(recorded(name))
    row = view.bottleneck
    assert (row.sub_component_type or row.component_type, row.bottleneck_identified) == (stage, True), row.explanation
    assert row.advisor_run_reason is None
    if event is not None:
        assert row.top_event == event


def test_what_is_known_to_wait_for_a_lock_is_not_said_to_execute() -> None:
    analysis, view = analysed(recorded("lock_contention"))
    told = with_locks([view], {view.path.path.path_id: 90.0}, Thresholds(), now())
    (row,) = told.path_bottlenecks
    assert (analysis.path_bottlenecks[0].top_event, row.top_event) == ("EXECUTE", "LOCK")
    assert row.explanation.endswith("% LOCK.")

    def share(of: Analysis, event: str) -> float:
        (value,) = [
            statistic.statistic_value or 0.0 for statistic in of.component_statistics
            if statistic.sub_component_type == "APPLY SERVER" and statistic.thread is None
            and statistic.statistic_name == f"EVENT: {event}"
        ]  # fmt: skip
        return value

    assert share(told, "LOCK") == pytest.approx(0.9 * share(analysis, "EXECUTE"), abs=0.1)
    assert share(told, "EXECUTE") == pytest.approx(0.1 * share(analysis, "EXECUTE"), abs=0.1)
    assert with_locks([view], {}, Thresholds(), now()).path_bottlenecks == analysis.path_bottlenecks


def test_idle_path_has_no_bottleneck() -> None:
    _, view = analysed(recorded("idle_source"))
    assert (view.bottleneck.verdict, view.bottleneck.advisor_run_reason) == (
        Verdict.SOURCE_IDLE, "NO BOTTLENECK IDENTIFIED",
    )  # fmt: skip


def lagging(name: str, lag: Lag) -> list[Sample]:
    return [
        sample.model_copy(
            update={"destinations": [share.model_copy(update={"lag": lag}) for share in sample.destinations]}
        )
        for sample in recorded(name)
    ]


@pytest.mark.parametrize("name", ["commit_order", "lock_contention", "trigger"])
def test_a_path_that_keeps_up_has_no_bottleneck(name: str) -> None:
    """One that is held up has one, however little waits."""
    for kept in (Lag(bytes=0, seconds=0.0), Lag(bytes=9 << 10, seconds=0.0, age_seconds=0.05)):
        row = analysed(lagging(name, kept))[1].bottleneck
        assert (row.bottleneck_identified, row.verdict) != (True, Verdict.BOTTLENECK), row.explanation
    for late in (
        Lag(bytes=9 << 10, seconds=None, age_seconds=20.0), Lag(bytes=9 << 10, seconds=None),
        Lag(bytes=9 << 20, seconds=1.0, age_seconds=0.5),
    ):  # fmt: skip
        assert analysed(lagging(name, late))[1].bottleneck.verdict == Verdict.BOTTLENECK


def test_what_was_before_the_present_start_is_not_judged() -> None:
    before = recorded("trigger")
    after = [sample.model_copy(update={"interval_seconds": 1.0}) for sample in recorded("idle_source")]
    stopped = {"status": "ABORTED", "phase": "STOPPED"}
    aborted = [
        sample.model_copy(
            update={**stopped, "destinations": [part.model_copy(update=stopped) for part in sample.destinations]}
        )
        for sample in before[-2:]
    ]
    analysis, view = analysed([*before, *aborted, *after])
    assert (view.bottleneck.verdict, view.path.samples) == (Verdict.SOURCE_IDLE, after)
    assert analysis.begin_at is not None and analysis.begin_at >= after[0].at - timedelta(seconds=2)
    _, still = analysed([*before, *aborted])
    assert len(still.path.samples) == len(before) + 2, "nothing runs now"
    restarted = [after[0].model_copy(update={"interval_seconds": None}), *after[1:]]
    assert analysed([*before, *restarted])[1].path.samples == restarted, "the engine's first answer since its start"


def parking(first: int | None, last: int | None, since: datetime | None = None) -> list[Sample]:
    """An idle path, as one is that applies nothing, whose error queue grows."""
    samples = recorded("idle_source")
    counts = {0: first, len(samples) - 1: last}
    shares = [
        [
            destination.model_copy(update={"error_queue_transactions": counts.get(number, first), "parks_since": since})
            for destination in sample.destinations
        ]
        for number, sample in enumerate(samples)
    ]
    return [sample.model_copy(update={"destinations": parts}) for sample, parts in zip(samples, shares, strict=True)]


@pytest.mark.parametrize(
    ("first", "last", "since", "told"),
    [
        (
            862,
            14047,
            None,
            "It applies nothing and parks what comes: 14\u202f047 transactions are parked, 13\u202f185 of them new.",
        ),
        (3, 3, now(), "Nothing is applied, and 3 transactions are parked."),
    ],
)
def test_what_only_parks_is_not_idle(first: int, last: int, since: datetime | None, told: str) -> None:
    _, view = analysed(parking(first, last, since))
    assert (view.bottleneck.verdict, view.bottleneck.explanation) == (Verdict.PARKING, told)


def test_a_quiet_source_is_idle_though_a_transaction_lies_parked_from_before() -> None:
    _, view = analysed(parking(1, 1))
    assert (view.bottleneck.verdict, view.bottleneck.explanation) == (
        Verdict.SOURCE_IDLE, "The source has no new changes of these tables. 1 transaction is parked.",
    )  # fmt: skip


@pytest.mark.parametrize(("first", "last"), [(None, 40), (40, None), (None, None)])
def test_an_error_queue_that_was_unknown_has_not_grown_from_nothing(first: int | None, last: int | None) -> None:
    """While another engine's sample is not fresh, nothing is known of the error queue at the destination it applies."""
    _, view = analysed(parking(first, last))
    beside = " 40 transactions are parked." if last else ""
    assert (view.bottleneck.verdict, view.bottleneck.explanation) == (
        Verdict.SOURCE_IDLE, f"The source has no new changes of these tables.{beside}",
    )  # fmt: skip


def test_growth_counts_from_the_first_known_error_queue() -> None:
    samples = parking(None, 45)
    known = samples[1].destinations[0].model_copy(update={"error_queue_transactions": 40})
    samples[1] = samples[1].model_copy(update={"destinations": [known]})
    _, view = analysed(samples)
    assert (view.bottleneck.verdict, view.bottleneck.explanation) == (
        Verdict.PARKING, "It applies nothing and parks what comes: 45 transactions are parked, 5 of them new.",
    )  # fmt: skip


def test_a_source_is_not_called_idle_while_the_lag_is_unknown() -> None:
    samples = [
        sample.model_copy(
            update={
                "destinations": [
                    destination.model_copy(update={"lag": Lag(bytes=None, seconds=None)})
                    for destination in sample.destinations
                ]
            }
        )
        for sample in recorded("idle_source")
    ]
    assert analysed(samples)[1].bottleneck.verdict is Verdict.NONE


def test_links_behind_which_a_path_is_held_back_are_marked() -> None:
    analysis, _ = analysed(recorded("hot_row"))
    ids = [f"k3j2h1g4:{name}" for name in ("capture", "queue", "apply:destination")]
    assert [part.component_id for part in analysis.components] == ids
    assert [(link.source_component_id, link.destination_component_id) for link in analysis.component_links] == [
        (ids[0], ids[1]), (ids[1], ids[2]),
    ]  # fmt: skip
    assert [link.position for link in analysis.component_links] == [1, 2]


def test_sender_is_held_back_by_a_receiver_at_work_and_is_busy_while_its_window_waits_for_the_network() -> None:
    """Of the network limit the window takes all there is: the thread that fills it has nothing to do."""
    sending = ComponentType.PROPAGATION_SENDER
    _, limited = analysed(recorded("network_limit"))
    _, held = analysed(recorded("slow_receiver"))
    by_network, by_receiver = limited.stage(sending), held.stage(sending)
    assert by_network is not None and by_network.mean is not None
    assert by_receiver is not None and by_receiver.mean is not None
    assert by_network.mean.events["NETWORK"] > 90
    assert by_receiver.mean.flow_control > 80
    for mean in (by_network.mean, by_receiver.mean):
        assert mean.idle + mean.flow_control + sum(mean.events.values()) == pytest.approx(100, abs=0.1)


def test_percentages_are_normalised_per_thread_and_sum_to_a_hundred() -> None:
    analysis, view = analysed(recorded("trigger"))
    servers = next(stage for stage in view.stages if stage.sub_component == "APPLY SERVER")
    assert len(servers.threads) == 4
    for thread in servers.threads:
        total = thread.occupancy.idle + thread.occupancy.flow_control + sum(thread.occupancy.events.values())
        assert total == pytest.approx(100, abs=0.1)
    idle = [row for row in analysis.component_statistics
            if (row.sub_component_type, row.statistic_name) == ("APPLY SERVER", "IDLE")]  # fmt: skip
    mean, *each = [row.statistic_value or 0.0 for row in sorted(idle, key=lambda row: row.thread or 0)]
    assert mean == pytest.approx(sum(each) / 4)


def test_first_sample_makes_everything_unknown_and_nothing_zero() -> None:
    first = recorded("hot_row")[0]
    parts = [part.model_copy(update={"counter_rates": None, "time_percent": None}) for part in first.components]
    analysis, view = analysed([first.model_copy(update={"interval_seconds": None, "components": parts})])
    assert view.bottleneck.verdict is Verdict.UNKNOWN
    rates = [row.statistic_value for row in analysis.component_statistics if "RATE" in row.statistic_name]
    assert rates
    assert set(rates) == {None}


def test_thresholds_can_be_set() -> None:
    _, view = analysed(recorded("trigger"), thresholds=Thresholds(idle=-1))
    assert view.bottleneck.verdict is Verdict.NONE


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        (Condition("ENABLED", "ENABLED", "RETRYING", ErrorSide.DESTINATION, "the source is gone"), "DESTINATION DOWN"),
        (Condition("ENABLED", "ENABLED", "RETRYING", ErrorSide.SOURCE, "gone"), "SOURCE DOWN"),
        (Condition("ENABLED", "ENABLED", "RETRYING", ErrorSide.LINK, "no way"), "LINK DOWN"),
        (Condition("ENABLED", "ENABLED", "RETRYING", ErrorSide.ENGINE, "the source's disk is full"), "ENGINE TROUBLE"),
        (Condition("ENABLED", "ENABLED", "RETRYING", None, "the source is gone"), "UNKNOWN"),
        (Condition("ENABLED", "ABORTED", "STOPPED", ErrorSide.DESTINATION, "no"), "ABORTED"),
        (Condition("DISABLED", "DISABLED", "STOPPED"), "STOPPED"),
        (Condition("ENABLED", "DISABLED", "STOPPED", paused=True), "PAUSED"),
        (Condition("ENABLED", "ENABLED", "INSTANTIATING"), "COPYING"),
        (Condition("ENABLED", "ENABLED", "REPLICATING", engine_silent="alpha"), "ENGINE DOWN"),
    ],
)
def test_broken_paths_have_a_verdict_instead_of_a_bottleneck(condition: Condition, verdict: str) -> None:
    _, view = analysed(recorded("trigger"), condition)
    assert (view.bottleneck.verdict.value, view.bottleneck.component_id) == (verdict, None)


def test_each_path_of_a_fan_out_has_figures_of_its_own() -> None:
    """And a name that says which it is."""
    whole = recorded("missing_index")
    shares = [
        [
            DestinationSample(
                destination_id=name, status="ENABLED", phase="REPLICATING", lcrs_per_second=rate,
                transactions_per_second=rate, bytes_per_second=rate, backlog=None, error_queue_transactions=0,
                latency=LatencySample(p50_ms=rate, p99_ms=rate, transactions=1),
                lag=Lag(bytes=round(rate), seconds=rate),
            )
            for name, rate in (("near", 1.0), ("far", 9000.0))
        ]
        for _ in whole
    ]  # fmt: skip
    samples = [sample.model_copy(update={"destinations": parts}) for sample, parts in zip(whole, shares, strict=True)]
    names = ["near", "far"]
    ends = {name: DatabaseFacts(name, f"b:1/{name}", "15.1") for name in names}
    source = DatabaseFacts("shop", "a:1/shop", "15.1")
    stream = StreamInput("k3j2h1g4", "orders", samples, source, ends, {}, RUNNING)
    analysis, views = analyse([stream], Thresholds(), now())
    assert [path.path_name for path in analysis.paths] == ["orders → near", "orders → far"]
    lags = [row.statistic_value for row in analysis.path_statistics if row.statistic_name == "REPLICATION LAG"]
    latencies = [row.statistic_value for row in analysis.path_statistics if row.statistic_name == "LATENCY P99"]
    assert (lags, latencies) == ([1, 9000], [0.001, 9])
    assert [series.lag_bytes[-1] for series in series_of(views)] == [1, 9000]


def test_a_lower_bound_of_latency_is_no_latency_of_what_arrived() -> None:
    whole = recorded("missing_index")
    known = LatencySample(p50_ms=2.0, p99_ms=5.0, transactions=9)
    bound = LatencySample(p50_ms=None, p99_ms=240_000.0, transactions=0, at_least=True)
    samples = [
        one.model_copy(
            update={"destinations": [part.model_copy(update={"latency": told}) for part in one.destinations]}
        )
        for one, told in zip(whole, [known] * (len(whole) - 1) + [bound], strict=True)
    ]
    analysis, view = analysed(samples)
    figures = {row.statistic_name: row.statistic_value for row in analysis.path_statistics}
    assert (figures["LATENCY P50"], figures["LATENCY P99"], figures["LATENCY AT LEAST"]) == (0.002, 0.005, 240)
    (line,) = path_lines(analysis, [])
    assert (line.latency_p99_seconds, line.latency_at_least_seconds) == (0.005, 240)
    (series,) = series_of([view])
    assert (series.latency_p99_ms[-1], series.latency_at_least_ms[-2:]) == (None, [None, 240_000])


def test_figures_that_are_not_fresh_are_left_out() -> None:
    """Those of an engine that died a moment ago would read as of now."""
    samples = recorded("missing_index")
    analysis, _ = analysed(samples)
    (line,) = path_lines(analysis, [], samples[-1].at + timedelta(seconds=14))
    assert None not in (line.messages_per_second, line.latency_p50_seconds, line.lag_bytes)
    at = samples[-1].at + timedelta(seconds=26)
    (line,) = path_lines(analysis, [], at)
    assert {getattr(line, name) for name in STATISTICS} == {None}
    (row, *_) = analysis.path_statistics
    words = _without_figures(at.isoformat(), row.statistic_time.isoformat())
    assert words == "no figures: the last sample was 26 s old"
    assert _without_figures(at.isoformat(), at.isoformat()) == "no figures"


def test_latency_of_apply_is_that_of_appliers_that_applied_something() -> None:
    """An idle one keeps the gauge of its last transaction, however long ago that was."""

    def latency(*, second_applies: bool, first_applies: bool = True) -> float | None:
        samples = []
        for sample in recorded("missing_index"):
            parts = []
            for part in sample.components:
                if part.sub_component == "APPLY SERVER":
                    is_first = part.server == 1
                    rate = 5.0 if (first_applies if is_first else second_applies) else 0.0
                    gauges = {**part.gauges, "latency_us": 2_000 if is_first else 900_000_000}
                    rates = part.counter_rates and {**part.counter_rates, "transactions": rate}
                    part = part.model_copy(update={"gauges": gauges, "counter_rates": rates})
                parts.append(part)
            samples.append(sample.model_copy(update={"components": parts}))
        analysis, _ = analysed(samples)
        (value,) = [
            row.statistic_value for row in analysis.component_statistics
            if (row.component_type, row.sub_component_type, row.thread, row.statistic_name)
            == ("APPLY", None, None, "LATENCY")
        ]  # fmt: skip
        return value

    assert latency(second_applies=True) == 900
    assert latency(second_applies=False) == 0.002
    assert latency(second_applies=False, first_applies=False) is None
