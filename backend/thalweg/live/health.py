"""A stream's health, as one level and one sentence."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from thalweg.db.models import EngineRow, StreamRow
from thalweg.engine_client.error_codes import ErrorCode, ErrorSide
from thalweg.inspection.slots import SlotState, why_lost
from thalweg.kernel.lifecycle import (
    SILENT,
    STARTING,
    DesiredStatus,
    EngineState,
    ObservedStatus,
    ShownState,
    StreamPhase,
    TroubleKind,
)
from thalweg.kernel.sums import Sum
from thalweg.kernel.time_to_full import FillingLimit
from thalweg.kernel.words import (
    capitalised,
    duration,
    ended,
    go_on_in_words,
    grouped,
    listed,
    parked_in_words,
    share_in_words,
    size,
)
from thalweg.live.changes_waiting import waiting_seconds
from thalweg.live.going_on import (
    applies,
    full_in_words,
    is_full,
    room_in_words,
    that_go_on,
    that_hold_up,
    that_park,
    that_stall,
)
from thalweg.live.lag import UNKNOWN_LAG
from thalweg.live.lagging import Behind, behind_in_words, stalls_in_words
from thalweg.live.out_of_reach import out_of_reach_in_words
from thalweg.live.retries import retry_in_words
from thalweg.live.schemas import DestinationSample, Health, HealthLevel, Lag, Sample
from thalweg.live.waits import waits_in_words

OBSERVATION_FRESH = timedelta(seconds=15)
AGE_TOLD_FROM = timedelta(minutes=1)
"""The number of parked transactions is told alone until the oldest is parked for so long."""
LEVELS = (HealthLevel.ERROR, HealthLevel.WARNING)
"""Levels of trouble, the worse first."""
HARMLESS = (TroubleKind.RENAMED, TroubleKind.UNIDENTIFIED)
"""Troubles of tables that stop nothing and lose nothing."""


@dataclass(frozen=True)
class Facts:
    """Known facts of a stream; `observed` is the contract's document of its status."""

    desired_status: DesiredStatus
    observed_status: ObservedStatus
    observed_phase: StreamPhase
    observed: dict[str, Any] | None
    observed_at: datetime | None
    engine_name: str
    engine_state: EngineState
    engine_message: str | None
    sample: Sample | None
    destination_names: dict[str, str] = field(default_factory=dict)
    """By id."""
    lag: Lag = field(default_factory=lambda: UNKNOWN_LAG)
    lags: dict[str, Lag] = field(default_factory=dict)
    """The lag of each destination, by id."""
    slot: SlotState | None = None
    seconds_to_idle: float | None = None
    """Until idle_replication_slot_timeout takes the slot that nobody reads."""
    source_name: str = "The source"


def engine_of_concern(row: StreamRow, engines: dict[str, EngineRow]) -> EngineRow:
    """The engine whose silence matters: the one of the stream's engines that does not answer, else the capturing one. A
    receiving engine concerns its destination; the stream, too, if that is its only one or, in a deletion, the last one
    left."""
    captures, receivers = engines[row.capture_engine_id], [engines[receiver.engine_id] for receiver in row.receivers]
    wanted = [] if row.capture_is_gone else [captures]
    if row.capture_is_gone or len(row.destinations) == 1:
        wanted += receivers
    return next((engine for engine in wanted if engine.state in SILENT), captures)


def is_fresh(observed_at: datetime | None, at: datetime) -> bool:
    return observed_at is not None and at - observed_at <= OBSERVATION_FRESH


def is_heard(facts: Facts, at: datetime) -> bool:
    """Whether what was observed says anything of now."""
    return facts.engine_state not in SILENT and is_fresh(facts.observed_at, at)


def _health(level: HealthLevel, reason: str) -> Health:
    return Health(level=level, reason=reason)


def health_of(facts: Facts, at: datetime) -> Health:
    if facts.engine_state in SILENT and facts.desired_status == DesiredStatus.DROPPED:
        return _health(
            HealthLevel.WARNING,
            f"It is being deleted, but the engine {facts.engine_name} does not answer. When it is lost for good, "
            "delete the stream again with force.",
        )
    if facts.engine_state in SILENT:
        reason = f"The engine {facts.engine_name}: {facts.engine_message or 'no answer'}"
        return _health(HealthLevel.UNKNOWN, ended(reason) + _held(facts, at))
    if facts.observed is None or facts.observed_at is None:
        refused = f" {facts.engine_name}: {facts.engine_message}" if facts.engine_message else ""
        return _health(HealthLevel.UNKNOWN, f"The engine has not reported on it yet.{refused}")
    if not is_fresh(facts.observed_at, at):
        age = round((at - facts.observed_at).total_seconds())
        return _health(HealthLevel.UNKNOWN, f"The last observation is {age} s old: the collector may not run.")
    error = facts.observed.get("error")
    if facts.observed_status == ObservedStatus.ABORTED:
        return _health(HealthLevel.ERROR, ended(_in_words(error)) + _held(facts, at))
    if facts.desired_status == DesiredStatus.DROPPED:
        reason = f"It is being deleted, held up by: {ended(error['message'])}" if error else "It is being deleted."
        reason = " ".join([reason, *waits_in_words(facts.observed, at)])
        return _health(HealthLevel.WARNING, reason)
    if error is not None and not _is_of_full_backlog(facts, error):
        lasting = out_of_reach_in_words(_concerned(facts, error), [facts.observed], at)
        return _health(HealthLevel.WARNING, f"The engine is retrying. {lasting or ended(_in_words(error))}")
    # An only destination that is stopped stops its stream.
    if facts.desired_status == DesiredStatus.DISABLED or facts.observed_status == ObservedStatus.DISABLED:
        return _stopped(facts, at)
    return _worst(_troubles(facts, at)) or _running(facts, at)


OF_DEFINITIONS = (ErrorCode.RULE_REFUSED, ErrorCode.TRANSFORMATION_REFUSED)
"""An engine finds them, but a definition does not fit its table."""


def _in_words(error: dict[str, Any] | None) -> str:
    """Readers of a stream's health look at its databases first, so an engine's own trouble is named, with its cure."""
    if error is None:
        return "It has stopped with an error."
    text = f"{error['title']}: {error['message']}"
    if error.get("side") != ErrorSide.ENGINE or error.get("code") in OF_DEFINITIONS:
        return text
    return f"{ended(text)} The problem is in the engine. {error['cure']}".rstrip()


def _concerned(facts: Facts, error: dict[str, Any]) -> list[str]:
    """The database that an error of the stream is about; none where the engine does not tell."""
    if error.get("side") == ErrorSide.SOURCE:
        return [facts.source_name]
    names = list(facts.destination_names.values())
    return names if error.get("side") == ErrorSide.DESTINATION and len(names) == 1 else []


def _worst(troubles: list[Health]) -> Health | None:
    """The first of the worst level, with the number of the others."""
    if not troubles:
        return None
    worst = min(troubles, key=lambda trouble: LEVELS.index(trouble.level))
    more = len(troubles) - 1
    return _health(worst.level, worst.reason + (f" And {more} more." if more else ""))


def _troubles(facts: Facts, at: datetime) -> list[Health]:
    """Troubles of destinations and tables, the more pressing first; the stream itself continues."""
    destinations = (facts.observed or {}).get("destinations", [])
    return [
        *_full(facts, destinations), *_broken(facts, destinations, ShownState.ABORTED, at), *_parking(facts, at),
        *_retried(facts, destinations), *_stalled(facts, destinations, at),
        *[_health(HealthLevel.WARNING, wait) for wait in waits_in_words(facts.observed, at)],
        *_table_troubles(facts), *_broken(facts, destinations, ShownState.RETRYING, at), *_parked(facts, at),
    ]  # fmt: skip


def _name(facts: Facts, destination_id: str) -> str:
    return facts.destination_names.get(destination_id, destination_id)


def _full(facts: Facts, destinations: list[dict[str, Any]]) -> Iterator[Health]:
    """Those with the same limit and the same cure in one sentence. Where nothing flows any more the stream has failed,
    however well the others are."""
    holding = [destination["id"] for destination in that_hold_up(facts.observed or {}, facts.sample)]
    by_cure: dict[tuple[int, bool, bool, bool], list[str]] = {}
    for destination in destinations:
        if is_full(destination):
            status = destination["status"]
            paused, failed = status == ObservedStatus.DISABLED, status == ObservedStatus.ABORTED
            key = destination["backlog"]["limit_bytes"], paused, failed, destination["id"] in holding
            by_cure.setdefault(key, []).append(_name(facts, destination["id"]))
    for (limit, paused, failed, stands), names in by_cure.items():
        yield _health(
            HealthLevel.ERROR if stands else HealthLevel.WARNING,
            f"{full_in_words(names, limit, stands=stands)} {room_in_words(names, paused=paused, failed=failed)}",
        )


def _is_of_full_backlog(facts: Facts, error: dict[str, Any]) -> bool:
    """Whether the stream's error is that of its only destination, whose backlog is full: that is told as such."""
    destinations = (facts.observed or {}).get("destinations", [])
    return any(is_full(destination) and destination["error"] == error for destination in destinations)


def _broken(
    facts: Facts, destinations: list[dict[str, Any]], trouble: ShownState, at: datetime
) -> Iterator[Health]:  # fmt: skip
    """Those destinations that have stopped with an error, or are tried again; one sentence for those with
    the same kind of error. Others are said to go on only where one applies."""
    by_cause: dict[str, list[dict[str, Any]]] = {}
    for destination in destinations:
        if _trouble(destination) == trouble and not is_full(destination):
            by_cause.setdefault(destination["error"].get("code") or destination["error"]["title"], []).append(
                destination
            )
    go_on = _others_go_on(facts)
    for same in by_cause.values():
        each = [_name(facts, destination["id"]) for destination in same]
        names = listed(each)
        what = _in_words(same[0]["error"])
        if any(_in_words(destination["error"]) != what for destination in same):
            what = f"{ended(what)} That is {_name(facts, same[0]['id'])}; the others have the same kind of error."
        if trouble is ShownState.ABORTED:
            have = "has" if len(same) == 1 else "have"
            yield _health(HealthLevel.ERROR, f"{names} {have} stopped{go_on}. {what}")
        else:
            at_destinations = all(destination["error"].get("side") == ErrorSide.DESTINATION for destination in same)
            lasting = out_of_reach_in_words(each, same, at) if at_destinations else None
            yield _health(HealthLevel.WARNING, f"The engine is retrying {names}{go_on}. {lasting or what}")


def _others_go_on(facts: Facts) -> str:
    return go_on_in_words(
        [_name(facts, destination["id"]) for destination in that_go_on(facts.observed or {}, facts.sample)]
    )


def _trouble(destination: dict[str, Any]) -> ShownState | None:
    """ABORTED, or RETRYING whatever it tries: to apply, or to stop."""
    if destination["status"] == ObservedStatus.ABORTED:
        return ShownState.ABORTED
    return (
        None if destination["error"] is None or destination["status"] == ObservedStatus.DROPPED else ShownState.RETRYING
    )


def _retried(facts: Facts, destinations: list[dict[str, Any]]) -> Iterator[Health]:
    for destination in destinations:
        if retry := retry_in_words(destination):
            where = f"{_name(facts, destination['id'])}: " if len(destinations) > 1 else ""
            yield _health(HealthLevel.WARNING, f"{where}{retry}: {_in_words(destination['next_retry']['error'])}")


def _stalled(facts: Facts, destinations: list[dict[str, Any]], at: datetime) -> Iterator[Health]:
    """Those with an error are told with it."""
    applying = {destination["id"] for destination in destinations if applies(destination)}
    stalled = [
        (_name(facts, destination.destination_id), destination)
        for destination in that_stall(facts.sample)
        if destination.destination_id in applying
    ]
    if stalled:
        go_on = _others_go_on(facts)
        yield _health(HealthLevel.WARNING, stalls_in_words(stalled, go_on, at))


def _parking(facts: Facts, at: datetime) -> Iterator[Health]:
    """A destination that only parks is as good as stopped, however busy it looks. One sentence for all of them."""
    parking = sorted(that_park(facts.sample), key=lambda destination: destination.parks_since or at)
    if not parking:
        return
    times = [duration((at - (destination.parks_since or at)).total_seconds()) for destination in parking]
    names = [_name(facts, destination.destination_id) for destination in parking]
    count = parked_in_words(Sum.of(destination.error_queue_transactions for destination in parking))
    if len(parking) == 1:
        reason = f"{names[0]} has parked everything for {times[0]} and applies nothing: {count} in its error queue"
    else:
        named = listed([f"{name} (for {time})" for name, time in zip(names, times, strict=True)])
        reason = f"{named} have parked everything and apply nothing: {count} in their error queues"
    yield _health(HealthLevel.ERROR, f"{reason}{_oldest_in_words(parking, at)}.")


def _oldest_in_words(destinations: list[DestinationSample], at: datetime) -> str:
    """Goes on with a sentence about what is parked."""
    oldest = min(
        (since for destination in destinations if (since := destination.error_queue_oldest_at) is not None),
        default=None,
    )
    if oldest is None or at - oldest < AGE_TOLD_FROM:
        return ""
    return f", the oldest for {duration(round((at - oldest).total_seconds()))}"


def _parked(facts: Facts, at: datetime) -> Iterator[Health]:
    """Where others park everything, these are told of by themselves. An unknown error queue makes a lower bound of the
    sum, as in the console."""
    parking = [destination.destination_id for destination in that_park(facts.sample)]
    destinations = facts.sample.destinations if facts.sample is not None else []
    others = [
        destination
        for destination in destinations
        if destination.destination_id not in parking and destination.error_queue_transactions != 0
    ]
    queues = {_name(facts, destination.destination_id): destination.error_queue_transactions for destination in others}
    parked = Sum.of(queues.values())
    if not parked.value:
        return
    if len(destinations) == 1:
        where = "error queue"
    elif len(queues) == 1:
        where = f"error queue of {next(iter(queues))}"
    else:
        counts = [f"{name} ({'unknown' if count is None else grouped(count)})" for name, count in queues.items()]
        where = f"error queues of {listed(counts)}"
    count = capitalised(parked_in_words(parked))
    yield _health(HealthLevel.WARNING, f"{count} in the {where}{_oldest_in_words(others, at)}.")


def _table_troubles(facts: Facts) -> Iterator[Health]:
    """Troubles of tables that have changed at the source, the worst first; the other tables continue. A trouble that
    has stopped a whole destination is reported as the destination's."""
    by_table: dict[str, Health] = {}
    for destination in (facts.observed or {}).get("destinations", []):
        for table in destination.get("tables", []):
            trouble = table.get("trouble")
            if trouble and (destination["status"] != ObservedStatus.ABORTED or trouble["kind"] == TroubleKind.RENAMED):
                level = HealthLevel.WARNING if trouble["kind"] in HARMLESS else HealthLevel.ERROR
                by_table[f"{table['schema']}.{table['table']}"] = _health(
                    level, f"{trouble['reason']} {trouble['cure']}"
                )
    yield from sorted(by_table.values(), key=lambda trouble: LEVELS.index(trouble.level))


def _stopped(facts: Facts, at: datetime) -> Health:
    """On purpose, and not well either: its lag grows."""
    paused = _paused(facts) if facts.desired_status == DesiredStatus.ENABLED else ""
    rests = paused.strip() or "Stopped."
    if facts.observed_status == ObservedStatus.DISABLED and (troubled := _worst(list(_table_troubles(facts)))):
        return _health(troubled.level, f"{rests} {troubled.reason}{_held(facts, at)}")
    if facts.observed_status != ObservedStatus.DISABLED:
        return _health(HealthLevel.STOPPED, "It is draining its queue and stopping.")
    level = HealthLevel.STOPPED
    if facts.slot is not None and facts.slot.wal_status == "lost":
        level = HealthLevel.ERROR
    elif facts.lag.seconds_to_full is not None or facts.seconds_to_idle is not None:
        level = HealthLevel.WARNING
    until = "is resumed" if paused else "starts again"
    return _health(level, f"{rests}{_held(facts, at) or f' The source keeps its WAL until it {until}.'}")


def _age_now(facts: Facts, at: datetime) -> float | None:
    """The age of the oldest change. One out of a sample has aged since: nothing newer comes of a silent engine."""
    age, sample = facts.lag.age_seconds, facts.sample
    if age is None or sample is None or age not in {destination.lag.age_seconds for destination in sample.destinations}:
        return age
    return age + max(0.0, (at - sample.at).total_seconds())


_FULL = {
    FillingLimit.SLOT: "max_slot_wal_keep_size takes its slot.",
    FillingLimit.BACKLOG: "the backlog on disk reaches queue_spill_limit_mb.",
    FillingLimit.STAGING: "the staged WAL reaches staging_limit_mb.",
}


def _held(facts: Facts, at: datetime) -> str:
    """A further sentence on what the source keeps for a stream that does not move."""
    lag, slot = facts.lag, facts.slot
    if slot is not None and slot.wal_status == "lost":
        return f" {' '.join(why_lost(slot.invalidation_reason))} Then delete the stream and create it again."
    idle = ""
    if facts.seconds_to_idle is not None:
        idle = f" In {duration(facts.seconds_to_idle)} idle_replication_slot_timeout will invalidate its slot."
    if not lag.bytes:
        return idle
    seconds = _age_now(facts, at)
    age = None if seconds is None else f"{duration(seconds)} old"
    if slot is None:
        oldest = f", the oldest {age}" if age else ""
        sentence = f" {size(lag.bytes)} of WAL wait for it at the source, of all its databases{oldest}."
    else:
        # A destination's backlog on the engine's disk is read already: the source keeps less than it is behind.
        oldest = f"; the oldest change that is not applied is {age}" if age else ""
        sentence = f" Its slot keeps {size(slot.retained_bytes)} of WAL at the source, of all its databases{oldest}."
    if lag.seconds_to_full is not None:
        sentence += f" In {duration(lag.seconds_to_full)} {_FULL[lag.reached_limit or FillingLimit.SLOT]}"
    return sentence + idle


def _running(facts: Facts, at: datetime) -> Health:
    if behind := behind_in_words(_behind(facts), at):
        return _health(HealthLevel.WARNING, behind)
    staying = [
        destination
        for destination in (facts.observed or {}).get("destinations", [])
        if destination["status"] != ObservedStatus.DROPPED
    ]
    if staying and all(destination["status"] == ObservedStatus.DISABLED for destination in staying):
        waits = "The changes for it wait" if len(staying) == 1 else "Their changes wait"
        return _health(HealthLevel.STOPPED, f"{_paused(facts).strip()} {waits} on the engine's disk.")
    paused = _paused(facts)
    return _health(HealthLevel.WARNING if paused else HealthLevel.OK, f"{_doing(facts)}{paused}")


def _doing(facts: Facts) -> str:
    if facts.observed_phase == StreamPhase.INSTANTIATING:
        return f"Copying the tables{_copied(facts)}."
    if facts.observed_phase == StreamPhase.INITIALIZING:
        return "Starting."
    if facts.observed_phase == StreamPhase.CATCHING_UP:
        return "Catching up with the source."
    if facts.observed_phase == StreamPhase.DRAINING:
        return "Draining its queue."
    return "Replicating."


def _paused(facts: Facts) -> str:
    """On purpose, but nothing arrives there. One that is far behind is told of with that."""
    destinations = (facts.observed or {}).get("destinations", [])
    names = [
        _name(facts, destination["id"])
        for destination in destinations
        if destination["status"] == ObservedStatus.DISABLED
    ]
    return f" {listed(names)} {'is' if len(names) == 1 else 'are'} paused." if names else ""


def _behind(facts: Facts) -> Iterator[Behind]:
    """Leaves out destinations that are being copied: they are behind until the copy ends."""
    sample, destinations = facts.sample, (facts.observed or {}).get("destinations", [])
    samples = {destination.destination_id: destination for destination in sample.destinations} if sample else {}
    if len(destinations) < 2:
        if facts.observed_phase not in STARTING:
            latency = sample.latency if sample else None
            paused = [
                _name(facts, destination["id"])
                for destination in destinations
                if destination["status"] == ObservedStatus.DISABLED
            ]
            waiting = _waiting_seconds(sample, *samples.values())
            stands = any(_stands(own, facts.lag) for own in samples.values())
            yield Behind("".join(paused), facts.lag, latency, waiting, paused=bool(paused), stands=stands)
        return
    for destination in destinations:
        if destination.get("phase") in STARTING or destination["status"] == ObservedStatus.DROPPED:
            continue
        own = samples.get(destination["id"])
        lag = facts.lags.get(destination["id"]) or (own.lag if own else UNKNOWN_LAG)
        waiting = _waiting_seconds(sample, own) if own else None
        paused = destination["status"] == ObservedStatus.DISABLED
        latency, stands = (own.latency, _stands(own, lag)) if own else (None, False)
        yield Behind(_name(facts, destination["id"]), lag, latency, waiting, paused=paused, stands=stands)


def _stands(own: DestinationSample, lag: Lag) -> bool:
    catches_up = own.status == ObservedStatus.ENABLED and own.phase == StreamPhase.CATCHING_UP
    return catches_up and own.lcrs_per_second == 0 and (lag.growth_bytes_per_second or 0.0) > 0


def _waiting_seconds(sample: Sample | None, *destinations: DestinationSample) -> float | None:
    waits = [waiting_seconds(sample, destination) for destination in destinations] if sample is not None else []
    return max((wait for wait in waits if wait is not None), default=None)


def _copied(facts: Facts) -> str:
    """How much of them, and of several destinations for whom."""
    destinations = (facts.observed or {}).get("destinations", [])
    copying, to = destinations, ""
    if len(destinations) > 1:
        copying = [
            destination for destination in destinations if destination.get("phase") == StreamPhase.INSTANTIATING
        ] or destinations
        to = f" to {listed([_name(facts, destination['id']) for destination in copying])}"
    copies = [destination.get("instantiation") or {} for destination in copying]
    tables = [table for copy in copies for table in copy.get("tables", [])]
    # The share of a number that nobody knows is not known either.
    total = Sum.of(rows if (rows := table["rows_estimated"]) >= 0 else None for table in tables).exact
    done = sum(table["rows_copied"] for table in tables)
    return to + (f": {share_in_words(done / total)} of the rows" if total else "")
