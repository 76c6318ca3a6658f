"""The rules on recorded paths, with facts of the databases beside them."""

import importlib
import pkgutil
from collections import Counter
from dataclasses import replace
from datetime import timedelta

from tests.rig.causes import CAUSES
from tests.test_advisor_analysis import analysed, recorded
from thalweg.advisor import findings as package
from thalweg.advisor.finding import Finding
from thalweg.advisor.findings.clues import MOVES_AGAIN, Parameter, StreamFacts
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.findings.ranking import FINDERS, find
from thalweg.advisor.streams import Condition
from thalweg.db.models import StreamRow
from thalweg.engine_client.error_codes import ErrorSide
from thalweg.features.advisor.facts import conditions_of
from thalweg.inspection.performance import Activity, DestinationFacts, SourceFacts, Trigger
from thalweg.inspection.sessions import Blocker, Waits
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.clock import now
from thalweg.live.schemas import ComponentSample, Sample


def findings(
    name: str, source: SourceFacts | None = None, destination: DestinationFacts | None = None,
    samples: list[Sample] | None = None, conditions: int = 0, kind: CaptureKind = CaptureKind.LOGICAL,
    **changed: Parameter,
) -> list[Finding]:  # fmt: skip
    _, view = analysed(samples or recorded(name))
    parameters = {"parallelism": Parameter(4, 4, True, 64), "group_size": Parameter(20000, 20000, True, 100_000)}
    parameters |= changed
    tables = [("public", "item")]
    facts = StreamFacts("source", "destination", parameters, tables, conditions, source, destination, kind)
    return find([view], {view.path.path.path_id: facts}, 15.0)


def with_reader_limiting(lcrs_per_transaction: float) -> list[Sample]:
    busy = {"APPLY READER": 95.0, "APPLY COORDINATOR": 60.0}
    samples = []
    for sample in recorded("tiny_transactions"):
        parts = []
        for part in sample.components:
            if part.sub_component in busy and part.time_percent is not None:
                share = busy[part.sub_component]
                none = dict.fromkeys(type(part.time_percent).model_fields, 0.0)
                times = type(part.time_percent)(**(none | {"busy": share, "idle": 100.0 - share}))
                rates = part.counter_rates and dict(part.counter_rates)
                if rates is not None and part.sub_component == "APPLY READER":
                    rates["lcrs"] = lcrs_per_transaction * rates["transactions"]
                part = part.model_copy(update={"time_percent": times, "counter_rates": rates})
            parts.append(part)
        samples.append(sample.model_copy(update={"components": parts}))
    return samples


def test_tiny_transactions_are_named_whichever_stage_they_keep_busy() -> None:
    by_stage = {
        (finding.code, finding.evidence[0].subject)
        for samples in (recorded("tiny_transactions"), with_reader_limiting(1.0))
        for finding in findings("tiny_transactions", samples=samples)[:1]
    }  # fmt: skip
    assert by_stage == {
        ("apply_tiny_transactions", "APPLY COORDINATOR"),
        ("apply_tiny_transactions", "APPLY READER"),
    }
    (large, *_) = findings("tiny_transactions", samples=with_reader_limiting(50.0))
    assert large.code == "apply_reader_cpu"


def waiting(round_trip_ms: float | None = None, **events: int) -> Waits:
    counted = Counter({name.replace("_", ":"): count for name, count in events.items()})
    return Waits(10, sum(counted.values()), counted, round_trip_ms=round_trip_ms)


def test_slow_flush_is_told_with_what_pg_stat_io_has_where_it_is_there() -> None:
    destination = DestinationFacts(now(), waits=waiting(IO_WALInitSync=6, LWLock_WALWrite=3, CPU=1))
    (before_16, *_) = findings("slow_fsync", destination=destination)
    assert before_16.code == "apply_slow_flush"
    destination.io = {"relation reads": 12.0, "relation fsyncs": 0.0, "wal fsyncs": 31.0, "wal fsync_ms": 6240.0}
    (told, *_) = findings("slow_fsync", destination=destination)
    values = {item.statistic: item.value for item in told.evidence}
    more = set(values) - {item.statistic for item in before_16.evidence}
    assert more == {"pg_stat_io: wal fsyncs", "pg_stat_io: wal fsync_ms", "pg_stat_io: relation fsyncs"}
    assert values["pg_stat_io: wal fsync_ms"] == 6240.0


def test_what_slows_the_applier_down_that_the_others_wait_for_comes_before_their_waits() -> None:
    item = ("public", "item")
    destination = DestinationFacts(
        now(), triggers=[Trigger(item, "audit", "slow", "A")], after={item: Activity(0, 0, 1000, 0, 1000, 0, 100)}
    )
    told = {finding.code: finding for finding in findings("trigger_behind_waits", destination=destination)}
    causes = [code for code, finding in told.items() if finding.is_cause]
    assert (causes, "apply_dependency_chain" in told) == (["apply_trigger"], True)
    executing = next(item for item in told["apply_trigger"].evidence if item.statistic == "EVENT: EXECUTE")
    assert isinstance(executing.value, float) and executing.value > 90  # of the one that does not wait
    (alone, *_) = findings("trigger_behind_waits")
    assert (alone.code, alone.is_cause) == ("apply_dependency_chain", True)


def test_there_is_no_hot_row_where_no_group_depends_on_another() -> None:
    alone = []
    for sample in recorded("hot_row"):
        parts = [
            part.model_copy(update={"counter_rates": {**part.counter_rates, "dependent_groups": 0.0}})
            if part.counter_rates is not None and "dependent_groups" in part.counter_rates
            else part
            for part in sample.components
        ]
        alone.append(sample.model_copy(update={"components": parts}))
    assert findings("hot_row")[0].code == "apply_dependency_chain"
    assert {"apply_dependency_chain", "apply_parallelism"}.isdisjoint(
        finding.code for finding in findings("hot_row", samples=alone)
    )


def test_whole_tables_that_are_read_are_never_told_with_no_rows() -> None:
    item = ("public", "item")
    activity = Activity(seq_scan=3, seq_tup_read=6000, idx_scan=9, inserts=0, updates=9, deletes=0, rows=2000)
    facts = DestinationFacts(now(), keyless=[item], before={item: activity}, after={item: activity})

    def rows_read() -> tuple[object, str]:
        (told,) = [
            finding for finding in findings("missing_index", destination=facts) if finding.code == "apply_missing_index"
        ]
        (read,) = [entry for entry in told.evidence if entry.statistic == "ROWS READ BY SEQUENTIAL SCANS"]
        return read.value, read.unit

    assert rows_read() == (6000.0, "ROWS SINCE COUNTING BEGAN")
    facts.after = {item: replace(activity, seq_tup_read=8000)}
    assert rows_read() == (2000.0, "ROWS WHILE LOOKED AT")


def test_index_is_unique_only_where_the_source_has_a_key() -> None:
    """Values that differ today may be equal tomorrow, and the source would allow it."""
    item = ("public", "item")
    activity = Activity(seq_scan=3, seq_tup_read=6000, idx_scan=9, inserts=0, updates=9, deletes=0, rows=2000)
    facts = DestinationFacts(now(), keyless=[item], candidates={item: ["article"]}, after={item: activity})

    def statement(source: SourceFacts | None) -> str | None:
        (told,) = [
            finding
            for finding in findings("missing_index", source=source, destination=facts)
            if finding.code == "apply_missing_index"
        ]
        return told.cures[0].sql

    on_item = '"item_thalweg_key" ON "public"."item"'
    assert statement(None) == f'CREATE INDEX CONCURRENTLY {on_item} ("article");'
    keyed = SourceFacts(now(), keys={item: ["id"]})
    assert statement(keyed) == f'CREATE UNIQUE INDEX CONCURRENTLY {on_item} ("id");'


def test_index_that_is_not_unique_is_missed_only_where_the_table_is_seen_being_read_whole() -> None:
    item = ("public", "item")
    activity = Activity(seq_scan=3, seq_tup_read=6000, idx_scan=9, inserts=0, updates=9, deletes=0, rows=2000)
    facts = DestinationFacts(now(), keyless=[item], before={item: activity}, after={item: activity})

    def told() -> bool:
        return "apply_missing_index" in {finding.code for finding in findings("missing_index", destination=facts)}

    assert told()  # one that lasts longer than the look is not counted yet
    facts.indexed = {item}
    assert not told()
    facts.after = {item: replace(activity, seq_scan=4, seq_tup_read=8000)}
    assert told()


def test_a_source_whose_log_is_mined_is_not_told_to_decode_faster() -> None:
    logical, *_ = findings("expensive_decode")
    mined, *_ = findings("expensive_decode", kind=CaptureKind.WAL)
    assert (logical.code, mined.code) == ("capture_decode", "capture_shipment")
    assert not any("decod" in text for text in [mined.title, mined.explanation, *(cure.text for cure in mined.cures)])
    busy, *_ = findings("rule_evaluation", kind=CaptureKind.WAL)
    assert (busy.code, "mines" in busy.explanation) == ("capture_cpu", True)


def test_conditions_of_rules_are_told_where_capture_is_fully_busy() -> None:
    """And only there: where something else limits, they cost nothing that matters."""
    for conditions in (0, 3):
        first, *_ = findings("rule_evaluation", conditions=conditions)
        assert (first.code, first.is_cause) == ("capture_cpu", True)
        told = {item.statistic: item.value for item in first.evidence}
        assert told.get("CONDITIONS OF RULES") == (conditions or None)
        assert any("conditions" in cure.text for cure in first.cures) == bool(conditions)
    assert not any("condition" in cure.text for found in findings("trigger", conditions=3) for cure in found.cures)


def standing_still() -> list[Sample]:
    """All appliers execute, and the rate is zero: what a lock of the whole table looks like in the samples."""
    found = []
    for sample in recorded("lock_contention"):
        parts = []
        for part in sample.components:
            if part.sub_component == "APPLY SERVER" and part.time_percent is not None:
                time = part.time_percent.model_copy(update=dict.fromkeys(type(part.time_percent).model_fields, 0.0))
                rates = dict.fromkeys(part.counter_rates or {}, 0.0)
                changes = {"time_percent": time.model_copy(update={"execute": 100.0}), "counter_rates": rates}
                parts.append(part.model_copy(update=changes))
            else:
                parts.append(part)
        found.append(sample.model_copy(update={"components": parts}))
    return found


def test_a_lock_of_another_session_is_named_with_its_holder() -> None:
    waits = waiting(Lock_relation=4)
    statement = "UPDATE item SET price = …"
    waits.blockers[4711] = Blocker(4711, "psql", "bob", "idle in transaction", 40.0, statement)
    destination = DestinationFacts(now(), waits=waits)
    found = findings("lock_contention", destination=destination, samples=standing_still())
    assert (found[0].code, found[0].title) == (
        "apply_lock_contention", "Session 4711 (psql) holds a lock that the appliers need",
    )  # fmt: skip
    who = f"ession 4711 (psql) of bob, idle in transaction for 40 s, executed last: {statement}"
    assert found[0].explanation.startswith(f"S{who}: in ")
    assert (found[0].evidence[0].statistic, found[0].evidence[0].value) == ("BLOCKED BY", f"s{who}")
    assert "apply_parallelism" not in {finding.code for finding in found}
    assert found[0].expected_gain == MOVES_AGAIN, "a share of no rate is no gain"


def just_locked(seconds: int) -> list[Sample]:
    """A path that kept up for seven seconds, until somebody took a lock so many seconds ago."""
    still = standing_still()[-1]
    parts = []
    for part in still.components:
        if part.time_percent is not None:
            none = dict.fromkeys(type(part.time_percent).model_fields, 0.0)
            part = part.model_copy(update={"time_percent": type(part.time_percent)(**(none | {"idle": 100.0}))})
        parts.append(part)

    def sample(second: int, lag_bytes: int, rate: float, components: list[ComponentSample]) -> Sample:
        destinations = [
            own.model_copy(update={"lcrs_per_second": rate, "lag": own.lag.model_copy(update={"bytes": lag_bytes})})
            for own in still.destinations
        ]
        at = still.at + timedelta(seconds=second)
        update = {"at": at, "interval_seconds": 1.0, "destinations": destinations, "components": components}
        return still.model_copy(update=update)

    quiet = [sample(second, 0, 100.0, parts) for second in range(7)]
    return quiet + [sample(7 + second, 50_000, 0.0, still.components) for second in range(seconds)]


def test_the_holder_of_a_lock_that_was_just_taken_is_named_before_it_limits_the_whole_span() -> None:
    waits = waiting(Lock_transactionid=4)
    waits.blockers[4711] = Blocker(4711, "psql", "bob", "idle in transaction", 3.0)
    destination = DestinationFacts(now(), waits=waits)
    _, view = analysed(just_locked(3))
    assert (view.bottleneck.bottleneck_identified, view.stands_now) == (False, True)
    (found, *_) = findings("lock_contention", destination=destination, samples=just_locked(3))
    assert (found.code, found.is_cause) == ("apply_lock_contention", True)
    _, view = analysed(just_locked(1))
    assert not view.stands_now, "one second is too short to tell"
    assert analysed(recorded("lock_contention"))[1].stands_now


def test_what_has_stopped_has_the_cure_of_its_error() -> None:
    stopped = Condition("ENABLED", "ABORTED", "STOPPED", ErrorSide.SOURCE, "public.t_7 was replaced.", "Copy it again.")
    _, view = analysed(recorded("trigger"), stopped)
    facts = StreamFacts("source", "destination", {}, [])
    (found,) = find([view], {view.path.path.path_id: facts}, 15.0)
    assert (found.code, [cure.text for cure in found.cures]) == ("aborted", ["Copy it again."])


def test_an_idle_source_causes_no_bottleneck() -> None:
    (found,) = findings("idle_source")
    assert (found.code, found.is_cause) == ("source_idle", False)


def test_what_is_the_engines_own_fault_is_no_databases_and_has_the_cure_of_its_error() -> None:
    told, cure = "write spill/1: No space left on device", "Free space on the disk that the message names."
    full = Condition("ENABLED", "ENABLED", "RETRYING", ErrorSide.ENGINE, told, cure)
    _, view = analysed(recorded("trigger"), full)
    (found,) = find([view], {view.path.path.path_id: StreamFacts("source", "destination", {}, [])}, 15.0)
    assert (found.code, [offered.text for offered in found.cures]) == ("engine_trouble", [cure])
    assert told in found.explanation


def test_more_appliers_are_never_the_cure_of_a_standstill() -> None:
    found = findings("lock_contention", samples=standing_still())
    assert [finding.code for finding in found if finding.is_cause] == ["apply_standstill"]
    assert not any(cure.parameters for finding in found if finding.is_cause for cure in finding.cures)


def test_the_network_is_the_cause_where_nobody_at_the_destination_is_at_work_on_what_appliers_wait_for() -> None:
    """The same path, with a trigger that is there and does not matter: the answers come from far away."""
    item = ("public", "item")
    destination = DestinationFacts(
        now(), waits=waiting(100.4, IO_WALSync=4), triggers=[Trigger(item, "audit", "slow", "A")],
        after={item: Activity(0, 0, 1000, 0, 1000, 0, 100)},
    )  # fmt: skip
    told = findings("trigger", destination=destination)
    assert [finding.code for finding in told if finding.is_cause] == ["apply_network"]
    assert "apply_slow_flush" not in {finding.code for finding in told}
    values = {item.statistic: item.value for item in told[0].evidence}
    assert values["ROUND TRIP"] == 0.1004
    assert isinstance(values["ON THE WAY"], float) and values["ON THE WAY"] > 75
    assert not any(cure.parameters for cure in told[0].cures), "some appliers have nothing to do: more are of no use"
    # Sessions at work, or a network that is quick: it is the trigger.
    destination.waits = waiting(100.4, CPU=40)
    assert findings("trigger", destination=destination)[0].code == "apply_trigger"
    destination.waits = waiting(0.4, CPU=4)
    assert findings("trigger", destination=destination)[0].code == "apply_trigger"


def test_conditions_are_counted_in_rules_of_every_scope() -> None:
    north, all_rows = {"name": "north", "condition": "region = 'north'"}, {"name": "all", "condition": None}
    rules = [
        {"schema": None, "table": None, "positive": None, "negative": [north]},
        {"schema": "public", "table": "item", "positive": [north, all_rows], "negative": []},
    ]
    assert conditions_of(StreamRow(rules={"include": [], "row_rules": rules})) == 2
    assert conditions_of(StreamRow(rules={"include": []})) == 0


def test_every_file_of_findings_is_asked() -> None:
    """A file with a function of its own name yields findings; others hold codes, facts and the order."""
    of_files = [
        getattr(importlib.import_module(f"{package.__name__}.{module.name}"), module.name, None)
        for module in pkgutil.iter_modules(package.__path__)
    ]
    assert {finder for finder in of_files if finder is not None} == set(FINDERS)


def test_the_causes_of_the_rig_expect_findings_that_there_are() -> None:
    known = list(FindingCode)
    assert [cause.name for cause in CAUSES if cause.code and cause.code not in known] == []
