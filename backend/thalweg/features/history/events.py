"""Events of a stream's past, for everybody who sees its charts: of the audit log only what was done, when and by whom,
never the contents or the address."""

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any, Literal, cast

from sqlalchemy import Select, literal, select, tuple_, union_all
from sqlalchemy.orm import selectinload

from thalweg.alerting.catalogue import RULES, AlertRuleId, AlertSeverity
from thalweg.db.audit_words import sentence_of
from thalweg.db.models import AlertRow, AuditRow, EngineRow, EngineStartRow, StreamRow
from thalweg.features.history.schemas import StreamEvent
from thalweg.features.history.service import range_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.models import Page
from thalweg.kernel.pagination import decode_cursor, encode_cursor, micros_of, time_of
from thalweg.kernel.problems import not_found

RESTARTS = frozenset({
    "streams_start", "streams_stop", "streams_retry", "destinations_start", "destinations_stop", "destinations_retry",
})  # fmt: skip
CHANGES = frozenset({
    "streams_create", "streams_update", "streams_delete", "destinations_add", "destinations_drop",
    "destinations_update", "destinations_in_effect",
    "stream_tables_accept", "stream_tables_copy", "stream_errors_delete", "stream_errors_edit",
    "stream_errors_execute", "stream_errors_execute_all", "stream_errors_execute_cause", "stream_errors_leave_out",
    "stream_errors_restore", "stream_errors_superseded", "stream_markers_create",
})  # fmt: skip
"""Named one by one: an action that is new shows itself to nobody but admins. Cures have a list of their own."""


class Source(IntEnum):
    """The part of a key that orders events of one moment."""

    ENGINE_START = 1
    ACTION = 2
    ALERT = 3


Key = tuple[datetime, int, int]


async def list_events(
    context: Context, stream_id: str, since: datetime | None, until: datetime | None, limit: int, cursor: str | None
) -> Page[StreamEvent]:
    stream = await context.session.get(StreamRow, stream_id, options=[selectinload(StreamRow.destinations)])
    if stream is None:
        raise not_found("stream", stream_id)
    begin, end = range_of(since, until, now())
    keys = [cast(Key, tuple(row)) for row in await context.session.execute(_keys(stream, begin, end, limit, cursor))]
    shown = keys[:limit]
    following = None
    if len(keys) > limit:
        at, source, number = shown[-1]
        following = encode_cursor(micros_of(at), source, number)
    return Page[StreamEvent](items=await _events(context, shown), next_cursor=following)


def _keys(
    stream: StreamRow, since: datetime, until: datetime, limit: int, cursor: str | None
) -> Select[tuple[Any, ...]]:
    """(at, source, id) of the range's events, newest first; one more than `limit`."""
    sources = union_all(
        select(EngineStartRow.started_at.label("at"), literal(int(Source.ENGINE_START)).label("source"),
               EngineStartRow.id.label("id")).where(
            EngineStartRow.engine_id.in_(stream.engine_ids), EngineStartRow.started_at >= since,
            EngineStartRow.started_at < until),
        select(AuditRow.at, literal(int(Source.ACTION)), AuditRow.id).where(
            AuditRow.target_type == "stream", AuditRow.target_id == stream.id,
            AuditRow.action.in_(RESTARTS | CHANGES), AuditRow.at >= since, AuditRow.at < until),
        select(AlertRow.fired_at, literal(int(Source.ALERT)), AlertRow.id).where(
            AlertRow.stream_id == stream.id, AlertRow.fired_at >= since, AlertRow.fired_at < until),
    ).subquery()  # fmt: skip
    key = sources.c.at, sources.c.source, sources.c.id
    query = select(*key).order_by(*(part.desc() for part in key)).limit(limit + 1)
    if cursor is None:
        return query
    micros, source, number = cast(list[int], decode_cursor(cursor, int, int, int))
    return query.where(tuple_(*key) < tuple_(literal(time_of(micros)), literal(source), literal(number)))


async def _events(context: Context, keys: Sequence[Key]) -> list[StreamEvent]:
    def numbers(source: Source) -> list[int]:
        return [number for _, of, number in keys if of == source]

    session = context.session
    starts = await session.execute(
        select(EngineStartRow, EngineRow.name).join(EngineRow, EngineRow.id == EngineStartRow.engine_id)
        .where(EngineStartRow.id.in_(numbers(Source.ENGINE_START)))
    )  # fmt: skip
    actions = await session.scalars(select(AuditRow).where(AuditRow.id.in_(numbers(Source.ACTION))))
    alerts = await session.scalars(select(AlertRow).where(AlertRow.id.in_(numbers(Source.ALERT))))
    made = {
        **{(Source.ENGINE_START, row.id): _start(row, name) for row, name in starts},
        **{(Source.ACTION, row.id): _action(row) for row in actions},
        **{(Source.ALERT, row.id): _alert(row) for row in alerts},
    }
    return [made[Source(source), number] for _, source, number in keys]


def _start(row: EngineStartRow, name: str) -> StreamEvent:
    return StreamEvent(
        id=f"engine-start-{row.id}", at=row.started_at, until=None, kind="restart", sentence=f"Engine {name} started",
        actor_name=None, severity=None,
    )  # fmt: skip


def _action(row: AuditRow) -> StreamEvent:
    kind: Literal["restart", "change"] = "restart" if row.action in RESTARTS else "change"
    return StreamEvent(
        id=f"action-{row.id}", at=row.at, until=None, kind=kind,
        sentence=sentence_of(row.action, row.before, row.after), actor_name=row.actor_name, severity=None,
    )  # fmt: skip


def _alert(row: AlertRow) -> StreamEvent:
    return StreamEvent(
        id=f"alert-{row.id}", at=cast(datetime, row.fired_at), until=row.resolved_at, kind="alert",
        sentence=RULES[AlertRuleId(row.rule)].title, actor_name=None, severity=AlertSeverity(row.severity),
    )  # fmt: skip
