"""Rules of precedence where several engines report on one stream: the one that captures, and those that receive for a
destination. live/reports.py joins the documents by these rules, history/joining.py the samples."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from thalweg.engine_client.documents import DestinationStatus, StreamStatus
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.kernel.lifecycle import REPLICATES, STARTING, DesiredStatus, ObservedStatus, StreamPhase

SAMPLE_FRESH = timedelta(seconds=10)
"""An engine's report stands beside a later one of another engine for so long."""
EARLIEST_FIRST = (
    StreamPhase.RETRYING, StreamPhase.INSTANTIATING, StreamPhase.INITIALIZING, StreamPhase.DROPPING,
    StreamPhase.DRAINING, StreamPhase.STOPPED, StreamPhase.CATCHING_UP, StreamPhase.REPLICATING,
)  # fmt: skip
"""The first phase in this order that an engine reports is shown: the other engines wait for that one."""
OF_WORKING_STREAM = (*STARTING, StreamPhase.CATCHING_UP)
"""A stream whose capture works is no further than the least far of its destinations that work."""
RATES = ("lcrs_per_second", "transactions_per_second", "bytes_per_second")
OF_APPLY = (*RATES, "latency", "error_queue_transactions")
"""The fields of a destination that the applying engine knows. The capturing engine knows the others."""
Report = StreamStatus | DestinationStatus
Item = TypeVar("Item")


def is_fresh(taken_at: datetime, at: datetime, width: timedelta = timedelta()) -> bool:
    """Both times are of this host's clock. `width`: of the interval that a sample stands for, if that is longer."""
    return at - taken_at <= max(SAMPLE_FRESH, width)


def counting(
    sent: DestinationStatus, received: StreamStatus | None, applied: DestinationStatus | None, desired: DesiredStatus
) -> list[Report]:
    """The reports on a destination that count, the sender's first. At a start each engine waits for the other: that
    report does not count while the other engine starts. In a removal the capturing engine comes first; once it has
    dropped the destination, the receiving engine's report counts."""
    sender: list[Report] = [] if waits(sent) and (received is None or starts(received)) else [sent]
    receiver = [report for report in (received, applied) if report is not None and not (waits(report) and starts(sent))]
    if desired != DesiredStatus.DROPPED:
        return sender + receiver
    return (receiver or sender) if sent.status == ObservedStatus.DROPPED else sender


def waits(report: Report) -> bool:
    """The other engine does not accept the link yet."""
    refused = report.error is not None and report.error.code == ErrorCode.LINK_REFUSED
    return report.status == ObservedStatus.ENABLED and refused


def starts(report: Report) -> bool:
    return report.phase in STARTING or waits(report)


def status_of(reports: Sequence[Report], desired: DesiredStatus) -> ObservedStatus:
    """ABORTED if any engine has aborted; the desired status only once all engines have reached it."""
    statuses = [report.status for report in reports]
    if ObservedStatus.ABORTED in statuses:
        return ObservedStatus.ABORTED
    wanted = ObservedStatus(desired)
    return next((status for status in statuses if status != wanted), wanted)


def phase_of(reports: Sequence[Report], status: ObservedStatus, desired: DesiredStatus) -> StreamPhase:
    """The earliest phase. If only some engines have stopped, the others drain or start."""
    phases = {report.phase for report in reports}
    if status == ObservedStatus.ABORTED:
        return StreamPhase.STOPPED
    phase = earliest(phases)
    if phase == StreamPhase.STOPPED and len(phases) > 1:
        return StreamPhase.DRAINING if desired == DesiredStatus.DISABLED else StreamPhase.INITIALIZING
    return phase


def earliest(phases: Collection[str]) -> StreamPhase:
    return next((phase for phase in EARLIEST_FIRST if phase in phases), StreamPhase.UNKNOWN)


def failing(reports: Iterable[Report]) -> Report | None:
    """The report whose error is shown: one that has aborted comes before one that retries."""
    failed = [report for report in reports if report.error is not None]
    return min(failed, key=lambda report: report.status != ObservedStatus.ABORTED, default=None)


def speaker(capturing: StreamStatus, destinations: Sequence[DestinationStatus]) -> DestinationStatus | None:
    """The only destination, if its state is the stream's: without a backlog they run, fail and stop together; with a
    backlog, if the destination is in trouble and the capture is not. None: the capturing engine's state is."""
    if len(destinations) != 1:
        return None
    (only,) = destinations
    well = capturing.status == ObservedStatus.ENABLED and capturing.error is None
    retried = only.status == ObservedStatus.ENABLED and only.error is not None
    troubled = only.status == ObservedStatus.ABORTED or retried
    return only if not only.has_backlog or (well and troubled) else None


def stream_phase(capturing: StreamStatus, destinations: Iterable[DestinationStatus]) -> StreamPhase:
    """The phase of a stream for which no destination speaks."""
    if capturing.status != ObservedStatus.ENABLED or capturing.phase not in REPLICATES:
        return capturing.phase
    phases = {
        destination.phase
        for destination in destinations
        if destination.status == ObservedStatus.ENABLED and destination.error is None
    }
    return next((phase for phase in OF_WORKING_STREAM if phase in phases), capturing.phase)


def slowest(destinations: Iterable[Item], p99_ms: Callable[[Item], float | None]) -> Item | None:
    """The destination whose latency is the stream's: the one with the highest p99. None: no destination's is known."""

    def known(destination: Item) -> float:
        value = p99_ms(destination)
        return -1.0 if value is None else value

    found = max(destinations, key=known, default=None)
    return None if found is None or p99_ms(found) is None else found
