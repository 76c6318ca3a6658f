"""From a stream's row, what was observed and its latest sample to what the API shows."""

import hashlib
from datetime import datetime
from typing import Any

from thalweg.db.models import DatabaseRow, DestinationRow, EngineRow, StreamRow
from thalweg.engine_client.documents import CHANGES, NOT_REPORTED, DestinationBacklog
from thalweg.features.streams.capture_schemas import KindChange
from thalweg.features.streams.copying import instantiation_of, time_of
from thalweg.features.streams.destination_lifecycle import allowed_actions as destination_actions
from thalweg.features.streams.parameters import effective
from thalweg.features.streams.rule_schemas import RuleCounts
from thalweg.features.streams.schemas import (
    DatabaseRef,
    DestinationSummary,
    DestinationTableName,
    EngineRef,
    InEffect,
    Positions,
    Stream,
    StreamDestination,
    StreamError,
    StreamParameter,
    StreamReport,
    StreamSummary,
    StreamTable,
    StreamWait,
    TableTrouble,
)
from thalweg.kernel.etags import etag_of
from thalweg.kernel.lifecycle import (
    SILENT,
    DesiredStatus,
    ObservedStatus,
    StreamPhase,
    TableState,
    offered_stream_actions,
)
from thalweg.kernel.renames import name_there
from thalweg.kernel.row_rules import ScopedRules, keys_of, scope_of
from thalweg.kernel.rules import TableRules
from thalweg.kernel.states import destination_state, stream_state
from thalweg.kernel.sums import known_sum
from thalweg.live.going_on import that_hold_up
from thalweg.live.health import Facts, engine_of_concern, health_of, is_fresh, is_heard
from thalweg.live.lag import UNKNOWN_LAG, of_stream, standing
from thalweg.live.latest import Live
from thalweg.live.out_of_reach import with_cure
from thalweg.live.rates import UNKNOWN, backlog_of
from thalweg.live.retries import shown_retry
from thalweg.live.schemas import Lag
from thalweg.live.slots import stream_slot

Definitions = dict[str, StreamParameter]
STATES = tuple(TableState)


def summary_of(row: StreamRow, live: Live, at: datetime) -> StreamSummary:
    """Without details of errors, whoever asks."""
    summary = StreamSummary(**_summary_fields(row, live, at))
    _hide(summary)
    return summary


def without_details(stream: Stream) -> Stream:
    """Hides what viewers may not see."""
    _hide(stream)
    for report in stream.reports:
        if report.error is not None:
            report.error.detail = None
    return stream


def _hide(stream: StreamSummary) -> None:
    destinations = stream.destinations
    errors = [
        stream.error,
        *(destination.error for destination in destinations),
        *(destination.next_retry for destination in destinations),
    ]
    for error in errors:
        if error is not None:
            error.detail = None


def stream_of(row: StreamRow, live: Live, definitions: Definitions, at: datetime) -> Stream:
    observed = row.observed or {}
    status = _status_of(row.observed_status)
    desired = DesiredStatus(row.desired_status)
    destinations = [_destination(row, destination, live, definitions, at) for destination in row.destinations]
    fields = {**_summary_fields(row, live, at), "destinations": destinations}
    actions = [str(action) for action in offered_stream_actions(desired, status)]
    if desired is not DesiredStatus.DROPPED:
        actions.append("add_destination")
    return Stream(
        **fields, kind_change=_kind_change(row, at), reports=_reports(row), rules=TableRules.model_validate(row.rules),
        mask_key_set=row.mask_key_sealed is not None,
        mask_key_version=_version_of(row.mask_key_sealed),
        parameters=row.parameters, effective_parameters=effective(definitions, row.parameters),
        restart_needed=row.restart_needed and any(map(_is_pending, destinations)),
        positions=_positions(observed.get("positions")),
        tables=_sum_of([destination.tables for destination in destinations]), actions=actions,
        rule_counts=_rule_counts(observed, row.rules.get("row_rules", [])),
    )  # fmt: skip


def _kind_change(row: StreamRow, at: datetime) -> KindChange | None:
    change = (row.observed or {}).get("kind_change")
    if change in (None, NOT_REPORTED) or not is_fresh(row.observed_at, at) or change["to"] != row.capture_kind:
        return None
    return KindChange.model_validate(change)


def tables_of(row: StreamRow) -> list[StreamTable]:
    """Each with what it is at all destinations together."""
    return _sum_of(
        [
            _tables(row, _observed(row, destination), heard=True, ruled=destination.row_rules)
            for destination in row.destinations
        ]
    )


def _summary_fields(row: StreamRow, live: Live, at: datetime) -> dict[str, Any]:
    observed, sample, slot = row.observed or {}, live.sample, live.slot
    engines = {
        row.capture_engine.id: row.capture_engine,
        **{destination.engine.id: destination.engine for destination in row.destinations},
    }
    concern = engine_of_concern(row, engines)
    lags = {destination.id: _lag(row, destination, live, at) for destination in row.destinations}
    lag = of_stream(lags.values(), live.source, slot)
    facts = Facts(
        row.desired_status, row.observed_status, row.observed_phase, row.observed, row.observed_at,
        concern.name, concern.state, concern.message, sample,
        {destination.id: destination.database.name for destination in row.destinations},
        lag, lags, slot,
        live.source.seconds_to_idle(slot) if live.source is not None and slot is not None else None,
        row.source.name,
    )  # fmt: skip
    heard = is_heard(facts, at)
    destinations = [
        DestinationSummary(**_destination_fields(row, destination, live, at)) for destination in row.destinations
    ]
    copied = [destination for destination in destinations if destination.rows_copied is not None]
    phase = _phase_of(row.observed_phase if heard else None)
    return {
        "id": row.id,
        "name": row.name,
        "source": database_ref(row.source),
        "capture_engine": engine_ref(row.capture_engine),
        "capture_kind": row.capture_kind,
        "destinations": destinations,
        "mode": row.mode,
        "desired_status": DesiredStatus(row.desired_status),
        "status": _status_of(row.observed_status if heard else None),
        "phase": phase,
        "state": stream_state(phase, [destination.state for destination in destinations]),
        "observed_at": row.observed_at,
        "health": health_of(facts, at),
        "error": _error(with_cure(observed, at)),
        "retry_at": observed.get("retry_at") if heard else None,
        "waits": _waits(observed.get("waits", [])) if heard else [],
        "lcrs_per_second": sample.lcrs_per_second if sample else None,
        "transactions_per_second": sample.transactions_per_second if sample else None,
        "bytes_per_second": sample.bytes_per_second if sample else None,
        "latency": sample.latency if sample else UNKNOWN,
        "lag": lag,
        "slot": stream_slot(live.source, slot, at),
        "sampled_at": sample.at if sample else None,
        "error_queue_transactions": sample.error_queue_transactions if sample else None,
        "table_count": len(row.tables),
        "rows_copied": known_sum(destination.rows_copied for destination in copied),
        "rows_to_copy": known_sum(destination.rows_to_copy for destination in copied),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "etag": etag_of(row.version),
    }


def _observed(row: StreamRow, destination: DestinationRow) -> dict[str, Any]:
    """The destination's part of what was observed; empty when it has not been reported on yet."""
    destinations = (row.observed or {}).get("destinations", [])
    return next((seen for seen in destinations if seen["id"] == destination.id), {})


def _destination(
    row: StreamRow, destination: DestinationRow, live: Live, definitions: Definitions, at: datetime
) -> StreamDestination:
    observed, heard = _observed(row, destination), _is_heard(row, destination, at)
    positions = observed.get("positions") or {}
    copies = heard and observed.get("phase") == StreamPhase.INSTANTIATING
    return StreamDestination(
        **_destination_fields(row, destination, live, at), parameters=destination.parameters,
        row_rules=[ScopedRules.model_validate(rules) for rules in destination.row_rules],
        rule_counts=_rule_counts(observed, destination.row_rules),
        effective_parameters=effective(definitions, {**row.parameters, **destination.parameters}),
        in_effect=_in_effect(row, destination, observed),
        applied=_lsn(positions.get("applied")), confirmed=_lsn(positions.get("confirmed")),
        instantiation=instantiation_of(
            observed.get("instantiation"), runs=copies, trail=observed.get("copy_trail")
        ),
        counted_since=time_of(observed.get("counted_since")),
        tables=_tables(row, observed, heard=heard, ruled=destination.row_rules),
    )  # fmt: skip


def _version_of(sealed: str | None) -> str | None:
    """The same secret sealed again is another text: nobody finds the secret from it."""
    return None if sealed is None else hashlib.sha256(sealed.encode()).hexdigest()[:12]


def _in_effect(row: StreamRow, destination: DestinationRow, observed: dict[str, Any]) -> InEffect | None:
    """An engine's word on an earlier change says nothing of the last one."""
    effect = observed.get("in_effect")
    if effect == NOT_REPORTED:
        return None
    runs = {row.desired_status, destination.desired_status} == {DesiredStatus.ENABLED}
    if effect is not None and effect["revision"] >= row.changed_revision:
        return InEffect.model_validate({"under_way": False, "from": effect["from"], "since": effect["since"]})
    taken = (row.capture_engine.acknowledged_revision or 0) >= row.changed_revision
    aborted = ObservedStatus.ABORTED in (row.observed_status, observed.get("status"))
    return InEffect.model_validate({"under_way": runs and not (taken and aborted), "from": None, "since": None})


def _is_pending(destination: StreamDestination) -> bool:
    return destination.in_effect is None or destination.in_effect.under_way


def _is_heard(row: StreamRow, destination: DestinationRow, at: datetime) -> bool:
    """Whether what was observed of the destination says anything of now."""
    return (
        row.capture_engine.state not in SILENT
        and destination.engine.state not in SILENT
        and is_fresh(row.observed_at, at)
    )


def _destination_fields(row: StreamRow, destination: DestinationRow, live: Live, at: datetime) -> dict[str, Any]:
    observed = _observed(row, destination)
    copied = instantiation_of(observed.get("instantiation"), runs=False)
    own, heard = live.of(destination.id), _is_heard(row, destination, at)
    error, backlog = _error(with_cure(observed, at)), observed.get("backlog")
    status = _status_of(observed.get("status") if heard else None)
    phase = _phase_of(observed.get("phase") if heard else None)
    parks_since, stalled_since = (own.parks_since, own.stalled_since) if own else (None, None)
    return {
        "id": destination.id,
        "database": database_ref(destination.database),
        "engine": engine_ref(destination.engine),
        "mode": row.mode_to(destination),
        "desired_status": DesiredStatus(destination.desired_status),
        "status": status,
        "phase": phase,
        "state": destination_state(
            status,
            phase,
            parks=parks_since is not None,
            stalls=stalled_since is not None or bool(that_hold_up(row.observed or {}, live.sample)),
            stream_desired_status=row.desired_status,
        ),
        "error": error,
        "retry_at": observed.get("retry_at") if heard else None,
        "lcrs_per_second": own.lcrs_per_second if own else None,
        "transactions_per_second": own.transactions_per_second if own else None,
        "latency": own.latency if own else UNKNOWN,
        "lag": _lag(row, destination, live, at),
        "backlog": backlog_of(DestinationBacklog.model_validate(backlog)) if backlog else None,
        "error_queue_transactions": own.error_queue_transactions if own else None,
        "error_queue_oldest_at": own.error_queue_oldest_at if own else None,
        "parks_since": parks_since,
        "stalled_since": stalled_since,
        "retrying_transactions": observed.get("retrying_transactions", 0) if heard else 0,
        "next_retry": shown_retry(observed.get("next_retry"), reveals=True) if heard else None,
        "rows_copied": copied.rows_copied if copied else None,
        "rows_to_copy": copied.rows_estimated if copied else None,
        "actions": destination_actions(row, destination, troubled=error is not None),
    }


def _lag(row: StreamRow, destination: DestinationRow, live: Live, at: datetime) -> Lag:
    """The lag that its engine reported a moment ago; else the one from the positions of source and destination. Unknown
    if the source has not been asked lately, or if an engine may be applying without a sample: both positions are old
    then, and their difference would be near 0 whatever the lag is."""
    own = live.of(destination.id)
    if own is not None and own.lag.bytes is not None:
        return own.lag
    asked = live.source is not None and is_fresh(live.source.read_at, at)
    if not asked or (own is None and _may_apply(row, destination, at)):
        return UNKNOWN_LAG
    return standing(row, destination.id, live.source, at)


def _may_apply(row: StreamRow, destination: DestinationRow, at: datetime) -> bool:
    if row.capture_engine.state in SILENT or destination.engine.state in SILENT:
        return False
    status = _observed(row, destination).get("status")
    return status == ObservedStatus.ENABLED or (status is not None and not is_fresh(row.observed_at, at))


def _reports(row: StreamRow) -> list[StreamReport]:
    if not row.receivers:
        return []
    return [
        _report(row, row.capture_engine, None),
        *(_report(row, receiver.engine, receiver.id) for receiver in row.receivers),
    ]


def _report(row: StreamRow, engine: EngineRow, destination_id: str | None) -> StreamReport:
    report = (row.reports or {}).get(engine.id)
    observed = report["observed"] if report and engine.state not in SILENT else {}
    status, phase = _status_of(observed.get("status")), _phase_of(observed.get("phase"))
    return StreamReport(
        destination_id=destination_id, engine=engine_ref(engine), status=status, phase=phase,
        state=destination_state(status, phase, parks=False, stalls=False, stream_desired_status=row.desired_status),
        error=_error(observed.get("error")),
        retry_at=observed.get("retry_at"), observed_at=time_of(report["asked_at"]) if report else None,
    )  # fmt: skip


def _status_of(text: str | None) -> ObservedStatus:
    return ObservedStatus(text) if text is not None and text in ObservedStatus.__members__ else ObservedStatus.UNKNOWN


def _phase_of(text: str | None) -> StreamPhase:
    return StreamPhase(text) if text in {phase.value for phase in StreamPhase} else StreamPhase.UNKNOWN


def engine_ref(row: EngineRow) -> EngineRef:
    return EngineRef(id=row.id, name=row.name, state=row.state)


def database_ref(row: DatabaseRow) -> DatabaseRef:
    return DatabaseRef(id=row.id, name=row.name, address=row.address)


def _error(error: dict[str, Any] | None) -> StreamError | None:
    if error is None:
        return None
    blank_is_null = {key: value if value not in ("", "0/0", 0) else None for key, value in error.items()}
    optional = dict.fromkeys(("detail", "cure", "side", "sqlstate", "table", "lsn", "xid", "at"))
    return StreamError.model_validate({**optional, **blank_is_null, "message": error["message"]})


def _waits(waits: list[dict[str, Any]]) -> list[StreamWait]:
    def shown(wait: dict[str, Any]) -> StreamWait:
        unseen_is_null = [{key: None if value == "" else value for key, value in by.items()} for by in wait["blockers"]]
        return StreamWait.model_validate({**wait, "destination_id": wait["destination"], "blockers": unseen_is_null})

    return [shown(wait) for wait in waits]


def _lsn(text: str | None) -> str | None:
    return None if text == "0/0" else text


def _positions(positions: dict[str, Any] | None) -> Positions | None:
    if positions is None:
        return None
    return Positions(**{name: _lsn(value) for name, value in positions.items()})


def _tables(
    row: StreamRow, observed: dict[str, Any], *, heard: bool, ruled: list[dict[str, Any]]
) -> list[StreamTable]:  # fmt: skip
    """Every table of the stream, also those that the engine has not reported on. An engine that does not answer leaves
    their counts as they were; their states are not known. `ruled`: the rules of the destination's own."""
    own = {(rules["schema"], rules["table"]) for rules in ruled}
    seen = {(table["schema"], table["table"]): table for table in observed.get("tables", [])}
    shown = []
    for table in row.tables:
        counts, there = seen.get((table["schema"], table["table"])), name_there(table)
        shown.append(
            StreamTable(
                schema_name=table["schema"], table=table["table"],
                destination_name=DestinationTableName(schema_name=there[0], table=there[1]),
                inserts_only=bool(table.get("inserts_only")),
                filtered="rules" in table or not own.isdisjoint(keys_of(table["schema"], table["table"])),
                state=counts["state"] if counts and heard else TableState.UNKNOWN,
                trouble=_trouble(counts.get("trouble")) if counts else None,
                **{name: counts[name] if counts else None for name in CHANGES},
                **{name: counts.get(name) if counts else None for name in ("changes_per_second", "last_change")},
            )
        )  # fmt: skip
    return shown


def _trouble(trouble: dict[str, Any] | None) -> TableTrouble | None:
    """Reports that were stored before engines told its SQL lack it."""
    return None if trouble is None else TableTrouble.model_validate({**trouble, "sql": trouble.get("cure_sql") or None})


def _rule_counts(observed: dict[str, Any], row_rules: list[dict[str, Any]]) -> RuleCounts | None:
    """With the scopes that `row_rules` have for each table now."""
    counts = observed.get("rule_counts")
    if counts is None:
        return None
    keys = {(rules["schema"], rules["table"]) for rules in row_rules}
    tables = [
        {**table, "scopes": [scope_of(key) for key in keys_of(table["schema"], table["table"]) if key in keys]}
        for table in counts["tables"]
    ]
    return RuleCounts.model_validate({**counts, "tables": tables})


def _sum_of(destinations: list[list[StreamTable]]) -> list[StreamTable]:
    """Table by table; its state is that of the destination that is in trouble or least far."""
    summed = []
    for same in zip(*destinations, strict=True):
        least = min(same, key=lambda table: (table.trouble is None, STATES.index(table.state)))
        update: dict[str, Any] = {name: known_sum(getattr(table, name) for table in same) for name in CHANGES}
        # All get the same changes: a sum would tell of more than the source makes.
        update["changes_per_second"] = max(
            (table.changes_per_second for table in same if table.changes_per_second is not None), default=None
        )
        update["filtered"] = any(table.filtered for table in same)
        update["last_change"] = min(
            (table.last_change for table in same if table.last_change is not None),
            key=lambda change: change.at_source,
            default=None,
        )
        summed.append(least.model_copy(update=update))
    return summed
