"""Pure parts: patterns, rates, health, lifecycle, cursors."""

import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.engine_double import example
from thalweg.engine_client.documents import EngineStats, EngineStatus, StreamStatus
from thalweg.inspection.matching import matches, selection_of
from thalweg.inspection.slots import SlotState
from thalweg.kernel.clock import now
from thalweg.kernel.lsn import lsn_of
from thalweg.kernel.pagination import decode_cursor, encode_cursor
from thalweg.kernel.problems import Problem
from thalweg.kernel.rules import TablePattern, TableRules
from thalweg.live.health import Facts, health_of
from thalweg.live.rates import Reading, sample_of
from thalweg.live.schemas import Lag, Sample


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("*", "", True), ("*", "anything", True), ("a?c", "abc", True), ("a?c", "ac", False), ("a*c", "abbbc", True),
        ("a*c", "abbb", False), ("*b*", "abc", True), ("", "", True), ("", "a", False), ("a.c", "abc", False),
        ("[ab]", "a", False), ("Ä*", "Ärger", True), ("a*b*c", "aXbYbZc", True), ("a", "A", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


def test_hostile_pattern_ends() -> None:
    assert matches("*a" * 64, "a" * 63 + "b" * 65) is False


@pytest.mark.parametrize("part", ["a" * 60, "*a" * 40, "*?a" * 30, "?a" * 30 + "*"], ids=range(4))
def test_a_thousand_hostile_patterns_end_soon(part: str) -> None:
    """Each is tried once with each name, however long the names and the patterns agree."""
    include = [rule("*", f"*{part}{number:03}b") for number in range(1000)]
    tables = [("public", "a" * 59 + f"{number:03}") for number in range(300)]
    begun = time.process_time()
    assert selection_of(TableRules(include=include), tables).chosen == []
    assert time.process_time() - begun < 5


@given(st.text(alphabet="ab*?", max_size=12), st.text(alphabet="ab", max_size=12))
def test_patterns_agree_with_a_slow_definition(pattern: str, text: str) -> None:
    def slowly(rest: str, here: str) -> bool:
        if not rest:
            return not here
        if rest[0] == "*":
            return slowly(rest[1:], here) or (bool(here) and slowly(rest, here[1:]))
        return bool(here) and rest[0] in ("?", here[0]) and slowly(rest[1:], here[1:])

    assert matches(pattern, text) == slowly(pattern, text)


def rule(schema: str, table: str) -> TablePattern:
    return TablePattern(schema_name=schema, table=table)


def test_exclude_wins_and_unmatched_rules_are_named() -> None:
    tables = [("public", "a"), ("public", "b"), ("sales", "a")]
    rules = TableRules(
        include=[rule("public", "*"), rule("public", "a"), rule("gone", "*"), rule("public", "typo")],
        exclude=[rule("*", "b")],
    )
    selection = selection_of(rules, tables)
    assert selection.chosen == [("public", "a")]
    assert selection.unmatched == [rules.include[2], rules.include[3]]


ONLY = example("status")["streams"][0]["destinations"][0]["id"]


def reading(ticks: int, **positions: str) -> Reading:
    stats, status = example("stats"), example("status")
    stats["monotonic_ns"] = ticks * 1_000_000_000
    for component in stats["streams"][0]["components"]:
        component["counters"] = {name: value * ticks for name, value in component["counters"].items()}
        if component["time_ns"]:
            component["time_ns"] = {name: value * ticks for name, value in component["time_ns"].items()}
    stats["streams"][0]["latency"]["buckets"] = [[u, c * ticks] for u, c in stats["streams"][0]["latency"]["buckets"]]
    status["streams"][0]["positions"].update(positions)
    applied = {name: positions[name] for name in ("applied", "confirmed") if name in positions}
    status["streams"][0]["destinations"][0]["positions"].update(applied)
    parsed = EngineStats.model_validate(stats)
    return Reading(
        parsed.sampled_at, parsed.monotonic_ns, parsed.streams[0], EngineStatus.model_validate(status).streams[0]
    )


def test_first_sample_knows_no_rates() -> None:
    sample = sample_of("k3j2h1g4", None, reading(1))
    assert sample.lcrs_per_second is None
    assert all(component.counter_rates is None for component in sample.components)
    assert all(component.lcrs_per_second is None for component in sample.components)


def test_rates_are_of_the_clock_of_the_engine() -> None:
    sample = sample_of("k3j2h1g4", reading(2), reading(4))
    assert sample.interval_seconds == 2
    assert sample.lcrs_per_second == 1190
    capture = sample.components[0]
    assert capture.counter_rates is not None
    assert capture.counter_rates["wal_bytes"] == 400000
    assert sample.components[1].time_percent is None


def test_component_that_began_anew_has_no_rates() -> None:
    sample = sample_of("k3j2h1g4", reading(4), reading(5))
    assert sample.lcrs_per_second is not None
    before, after = reading(4), reading(5)
    after.components[f"{ONLY}:server-1"].counters["lcrs"] = 3
    sample = sample_of("k3j2h1g4", before, after)
    assert sample.lcrs_per_second is None
    assert sample.components[0].lcrs_per_second is not None


def test_a_rate_is_unknown_while_that_of_one_applier_is() -> None:
    before, after = reading(4), reading(5)
    for seen in (before, after):
        second = seen.components[f"{ONLY}:server-1"].model_copy(update={"server": 2}, deep=True)
        seen.components[f"{ONLY}:server-2"] = second
    whole = sample_of("k3j2h1g4", before, after)
    assert whole.lcrs_per_second is not None
    assert whole.destinations[0].lcrs_per_second == whole.lcrs_per_second
    after.components[f"{ONLY}:server-2"].counters["lcrs"] = 3
    sample = sample_of("k3j2h1g4", before, after)
    assert (sample.lcrs_per_second, sample.destinations[0].lcrs_per_second) == (None, None)


def test_idle_interval_has_zero_rates_and_no_latency() -> None:
    now_reading = reading(3)
    now_reading.monotonic_ns += 1_000_000_000
    sample = sample_of("k3j2h1g4", reading(3), now_reading)
    assert sample.lcrs_per_second == 0
    assert (sample.latency.p50_ms, sample.latency.transactions) == (None, 0)


def test_lag() -> None:
    before = reading(1, applied="0/1000", confirmed="0/0", source_end="0/3000")
    after = reading(2, applied="0/2000", confirmed="0/0", source_end="0/4000")
    sample = sample_of("k3j2h1g4", before, after)
    assert (sample.lag.bytes, sample.lag.seconds) == (0x2000, 2.0)
    done = sample_of("k3j2h1g4", before, reading(2, applied="0/1", confirmed="0/4000", source_end="0/4000"))
    assert (done.lag.bytes, done.lag.seconds) == (0, 0)


def test_components_name_the_destination_that_does_not_share_them() -> None:
    stats = EngineStats.model_validate({**example("stats"), "streams": [example("stats.fanout")]})
    status = StreamStatus.model_validate(example("status.fanout"))
    sample = sample_of("f4n0u7aa", None, Reading(stats.sampled_at, 1, stats.streams[0], status))
    assert [(component.id, component.destination_id) for component in sample.components] == [
        ("capture", None), ("shipment", None), ("builder", None), ("queue", None), ("reports:backlog", "reports"),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), [("0/0", 0), ("1/0", 1 << 32), ("16/B374D848", 0x16B374D848), ("x", 0)])
def test_lsn(text: str, value: int) -> None:
    assert lsn_of(text) == value


def facts(**changes: Any) -> Facts:
    fresh: dict[str, Any] = {
        "desired_status": "ENABLED", "observed_status": "ENABLED", "observed_phase": "REPLICATING",
        "observed": {"error": None, "destinations": []}, "observed_at": now(), "engine_name": "local",
        "engine_state": "ONLINE", "engine_message": None, "sample": None,
    }  # fmt: skip
    return Facts(**{**fresh, **changes})


ERROR = {"title": "The connection broke", "message": "server closed it"}


TAKEN = SlotState(
    name="s", active=False, wal_status="lost", retained_bytes=0, safe_bytes=None, invalidation_reason="idle_timeout"
)
KEEPS = SlotState(name="s", active=False, wal_status="reserved", retained_bytes=2 << 20, safe_bytes=None)
BEHIND = Lag(bytes=3 << 20, seconds=None, age_seconds=300, seconds_to_full=7200)


def sample_with(**changes: Any) -> Sample:
    return sample_of("k3j2h1g4", reading(1), reading(2)).model_copy(update=changes)


def sample_that_parked(count: int) -> Sample:
    sample = sample_with()
    (destination,) = sample.destinations
    return sample_with(destinations=[destination.model_copy(update={"error_queue_transactions": count})])


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({}, "ok", "Replicating."),
        ({"observed": None}, "unknown", "not reported"),
        ({"observed_at": now() - timedelta(minutes=1)}, "unknown", "collector"),
        ({"engine_state": "UNREACHABLE", "engine_message": "no answer"}, "unknown", "local: no answer"),
        ({"observed_status": "ABORTED", "observed": {"error": ERROR}}, "error", "The connection broke"),
        (
            {"observed_phase": "RETRYING", "observed": {"error": ERROR}},
            "warning",
            "The engine is retrying. The connection broke: server closed it",
        ),
        ({"desired_status": "DROPPED", "observed": {"error": ERROR}}, "warning", "held up by: server closed"),
        ({"desired_status": "DISABLED", "observed_status": "DISABLED"}, "stopped", "Stopped. The source keeps its WAL"),
        (
            {"desired_status": "DISABLED", "observed_status": "DISABLED", "lag": BEHIND},
            "warning",
            "Stopped. 3.0 MiB of WAL wait for it at the source, of all its databases, the oldest 5 min old. In 2 h "
            "max_slot_wal_keep_size",
        ),
        (
            {"desired_status": "DISABLED", "observed_status": "DISABLED", "seconds_to_idle": 1800.0},
            "warning",
            "Stopped. In 30 min idle_replication_slot_timeout will invalidate its slot.",
        ),
        (
            {"desired_status": "DISABLED", "observed_status": "DISABLED", "slot": TAKEN},
            "error",
            "it was not read for longer than idle_replication_slot_timeout",
        ),
        (
            {
                "observed_status": "ABORTED",
                "lag": BEHIND,
                "slot": KEEPS,
                "observed": {"error": {"title": "Login refused", "message": 'role "r" is not permitted to log in'}},
            },
            "error",
            'Login refused: role "r" is not permitted to log in. Its slot keeps 2.0 MiB of WAL at the source',
        ),
        (
            {"desired_status": "DISABLED", "observed_status": "DISABLED", "lag": BEHIND, "slot": KEEPS},
            "warning",
            "Stopped. Its slot keeps 2.0 MiB of WAL at the source, of all its databases; the oldest change that is not "
            "applied is 5 min old. In 2 h",
        ),
        ({"lag": BEHIND}, "warning", "5 min behind its source: 3.0 MiB of WAL are not applied."),
        ({"lag": BEHIND, "engine_state": "UNREACHABLE"}, "unknown", "3.0 MiB of WAL wait for it"),
        ({"sample": sample_that_parked(2)}, "warning", "2 transactions are parked"),
    ],
)
def test_health(changes: dict[str, Any], level: str, words: str) -> None:
    health = health_of(facts(**changes), now())
    assert health.level == level
    assert words in health.reason


@given(st.text(max_size=50))
def test_any_text_as_cursor_is_a_key_or_a_problem(text: str) -> None:
    try:
        key = decode_cursor(text, str, int)
    except Problem as problem:
        assert problem.code == "invalid_request"
    else:
        assert decode_cursor(encode_cursor(*key), str, int) == key
