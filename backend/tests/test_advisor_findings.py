"""The rules on recorded paths, with facts of the databases beside them."""

from collections import Counter

import pytest

from tests.test_advisor_analysis import analysed, recorded
from thalweg.advisor.finding import Finding
from thalweg.advisor.findings.clues import Parameter, StreamFacts
from thalweg.advisor.findings.ranking import find
from thalweg.inspection.performance import Activity, DestinationFacts, SourceFacts, Trigger
from thalweg.inspection.row_filters import RowFilter
from thalweg.inspection.sessions import Waits
from thalweg.kernel.clock import now


def findings(
    name: str, source: SourceFacts | None = None, destination: DestinationFacts | None = None
) -> list[Finding]:
    _, view = analysed(recorded(name))
    parameters = {"parallelism": Parameter(4, 4, True, 64), "group_size": Parameter(20000, 20000, True, 100_000)}
    facts = StreamFacts("source", "destination", parameters, [("public", "item")], source, destination)
    return find([view], {view.path.path.path_id: facts}, 15.0)


def waiting(**events: int) -> Waits:
    counted = Counter({name.replace("_", ":"): count for name, count in events.items()})
    return Waits(10, sum(counted.values()), counted)


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


@pytest.mark.parametrize(("row_us", "code"), [(94.0, "capture_row_filter"), (0.3, "capture_decode"),
                                              (None, "capture_decode")])  # fmt: skip
def test_row_filter_is_the_cause_where_it_costs_more_than_decoding(row_us: float | None, code: str) -> None:
    expression = "(length(md5(repeat('thalweg'::text, 5000))) = 32)"
    source = SourceFacts(now(), row_filters=[RowFilter(("public", "item"), expression, row_us)])
    (first, *_) = findings("rule_evaluation", source=source)
    assert (first.code, first.is_cause) == (code, True)
    assert any(item.value == expression for item in first.evidence) == (code == "capture_row_filter")
