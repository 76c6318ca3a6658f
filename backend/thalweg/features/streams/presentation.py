"""From a stream's row, what was observed and its latest sample to what the API shows."""

from datetime import datetime
from typing import Any

from thalweg.db.models import DatabaseRow, EngineRow, StreamRow
from thalweg.features.streams.lifecycle import DesiredStatus, allowed_actions
from thalweg.features.streams.parameters import effective
from thalweg.features.streams.schemas import (
    DatabaseRef,
    EngineRef,
    Instantiation,
    ObservedStatus,
    Positions,
    Stream,
    StreamError,
    StreamHalf,
    StreamMode,
    StreamParameter,
    StreamPhase,
    StreamSummary,
    StreamTable,
    TableProgress,
)
from thalweg.kernel.etags import etag_of
from thalweg.kernel.rules import TableRules
from thalweg.live.health import Facts, engine_of_concern, health_of
from thalweg.live.schemas import Backlog, HalfRole, LatencySample, Sample


def summary_of(row: StreamRow, sample: Sample | None, at: datetime) -> StreamSummary:
    return StreamSummary(**_summary_fields(row, sample, at))


def stream_of(row: StreamRow, sample: Sample | None, definitions: dict[str, StreamParameter], at: datetime) -> Stream:
    observed = row.observed or {}
    status = _status_of(row.observed_status)
    return Stream(
        **_summary_fields(row, sample, at), halves=_halves(row), rules=TableRules.model_validate(row.rules),
        parameters=row.parameters, effective_parameters=effective(definitions, row.parameters),
        restart_needed=row.restart_needed,
        positions=_positions(observed.get("positions")),
        instantiation=instantiation_of(observed.get("instantiation"), at), tables=_tables(row),
        actions=[str(action) for action in allowed_actions(DesiredStatus(row.desired_status), status)],
    )  # fmt: skip


def _summary_fields(row: StreamRow, sample: Sample | None, at: datetime) -> dict[str, Any]:
    observed = row.observed or {}
    copied = instantiation_of(observed.get("instantiation"), at)
    capture = row.capture_engine or row.engine
    concern = engine_of_concern(row, {capture.id: capture, row.engine.id: row.engine})
    facts = Facts(
        row.desired_status, row.observed_status, row.observed_phase, row.observed, row.observed_at,
        concern.name, concern.state, concern.message, sample,
    )  # fmt: skip
    return {
        "id": row.id,
        "name": row.name,
        "source": database_ref(row.source),
        "destination": database_ref(row.destination),
        "engine": engine_ref(row.engine),
        "capture_engine": engine_ref(capture),
        "apply_engine": engine_ref(row.engine),
        "mode": StreamMode.COMBINED if row.capture_engine is None else StreamMode.PROPAGATION,
        "desired_status": DesiredStatus(row.desired_status),
        "status": _status_of(row.observed_status),
        "phase": _phase_of(row.observed_phase),
        "observed_at": row.observed_at,
        "health": health_of(facts, at),
        "error": _error(observed.get("error")),
        "retry_at": observed.get("retry_at"),
        "lcrs_per_second": sample.lcrs_per_second if sample else None,
        "transactions_per_second": sample.transactions_per_second if sample else None,
        "bytes_per_second": sample.bytes_per_second if sample else None,
        "latency": sample.latency if sample else LatencySample(p50_ms=None, p99_ms=None, transactions=None),
        "backlog": sample.backlog if sample else Backlog(bytes=None, seconds=None),
        "sampled_at": sample.at if sample else None,
        "error_queue_transactions": sample.error_queue_transactions if sample else None,
        "table_count": len(row.tables),
        "rows_copied": copied.rows_copied if copied else None,
        "rows_to_copy": copied.rows_estimated if copied else None,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "etag": etag_of(row.version),
    }


def _halves(row: StreamRow) -> list[StreamHalf]:
    if row.capture_engine is None:
        return []
    engines = {HalfRole.SENDING: row.capture_engine, HalfRole.RECEIVING: row.engine}
    return [_half(role, engine, (row.halves or {}).get(role.value)) for role, engine in engines.items()]


def _half(role: HalfRole, engine: EngineRow, half: dict[str, Any] | None) -> StreamHalf:
    observed = half["observed"] if half else {}
    return StreamHalf(
        role=role, engine=engine_ref(engine), status=_status_of(observed.get("status")),
        phase=_phase_of(observed.get("phase")), error=_error(observed.get("error")),
        retry_at=observed.get("retry_at"), observed_at=_time(half["asked_at"]) if half else None,
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
    optional = {"cure": None, "sqlstate": None, "table": None, "lsn": None, "xid": None, "at": None}
    return StreamError.model_validate({**optional, **blank_is_null, "message": error["message"]})


def _positions(positions: dict[str, Any] | None) -> Positions | None:
    if positions is None:
        return None
    return Positions(**{name: value if value != "0/0" else None for name, value in positions.items()})


def _tables(row: StreamRow) -> list[StreamTable]:
    """Every table of the stream, also those that the engine has not reported on."""
    seen = {(table["schema"], table["table"]): table for table in (row.observed or {}).get("tables", [])}
    shown = []
    for table in row.tables:
        counts = seen.get((table["schema"], table["table"]))
        shown.append(
            StreamTable(
                schema_name=table["schema"], table=table["table"], state=counts["state"] if counts else "UNKNOWN",
                inserts=counts["inserts"] if counts else None, updates=counts["updates"] if counts else None,
                deletes=counts["deletes"] if counts else None, truncates=counts["truncates"] if counts else None,
            )
        )  # fmt: skip
    return shown


def instantiation_of(document: dict[str, Any] | None, at: datetime) -> Instantiation | None:
    """Rates are averages since the start: ranges finish at once, so that shorter intervals would jump."""
    if document is None:
        return None
    tables = [_table_progress(table) for table in document["tables"]]
    estimates = [table.rows_estimated for table in tables]
    rows = sum(table.rows_copied for table in tables)
    size = sum(table.bytes_copied for table in tables)
    total = sum(estimate for estimate in estimates if estimate is not None)
    started, finished = _time(document["started_at"]), _time(document["finished_at"])
    seconds = ((finished or at) - started).total_seconds() if started else 0
    rate = rows / seconds if seconds > 0 and rows else None
    return Instantiation(
        started_at=started, finished_at=finished, rows_estimated=total, rows_copied=rows, bytes_copied=size,
        rows_per_second=rate, bytes_per_second=size / seconds if rate else None,
        seconds_left=0.0 if finished else _left(total, rows, rate), tables=tables,
    )  # fmt: skip


def _table_progress(table: dict[str, Any]) -> TableProgress:
    seconds, rows = table["seconds"], table["rows_copied"]
    rate = rows / seconds if seconds and rows else None
    done = table["state"] in ("COPIED", "REPLICATING")
    estimate = table["rows_estimated"] if table["rows_estimated"] >= 0 else None
    return TableProgress(
        schema_name=table["schema"], table=table["table"], state=table["state"], rows_estimated=estimate,
        rows_copied=rows, bytes_copied=table["bytes_copied"], ranges_total=table["ranges_total"],
        ranges_copied=table["ranges_copied"], seconds=seconds, rows_per_second=rate,
        bytes_per_second=table["bytes_copied"] / seconds if rate else None,
        seconds_left=0.0 if done else _left(estimate, rows, rate),
    )  # fmt: skip


def _left(total: int | None, done: int, rate: float | None) -> float | None:
    return max(0, total - done) / rate if total is not None and rate else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
