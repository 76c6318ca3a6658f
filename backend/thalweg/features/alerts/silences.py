"""Silences: notices are kept back, alerts are shown as before."""

from datetime import timedelta

from thalweg.alerting.catalogue import RULES, AlertRuleId
from thalweg.db.audit import record, snapshot
from thalweg.db.models import AlertSilenceRow, StreamRow
from thalweg.features.alerts import repository
from thalweg.features.alerts.schemas import AlertSilence, AlertSilenceCreate
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.models import Page
from thalweg.kernel.problems import not_found


def _resource(row: AlertSilenceRow, names: dict[str, str]) -> AlertSilence:
    return AlertSilence(
        id=row.id, rule=AlertRuleId(row.rule) if row.rule else None, stream_id=row.stream_id,
        stream_name=names.get(row.stream_id) if row.stream_id else None, until=row.until, reason=row.reason,
        created_by=row.created_by, created_at=row.created_at,
    )  # fmt: skip


def _name(silence: AlertSilence) -> str:
    rule = RULES[silence.rule].title if silence.rule else "every rule"
    return f"{rule}, {silence.stream_name or 'everything'}"


async def list_silences(context: Context) -> Page[AlertSilence]:
    """Those that hold now, the first to end first."""
    rows = await repository.current_silences(context.session, now())
    names = await repository.stream_names(context.session, {row.stream_id for row in rows if row.stream_id})
    return Page[AlertSilence](items=[_resource(row, names) for row in rows], next_cursor=None)


async def create_silence(context: Context, body: AlertSilenceCreate) -> Created:
    names: dict[str, str] = {}
    if body.stream_id is not None:
        stream = await context.session.get(StreamRow, body.stream_id)
        if stream is None:
            raise not_found("stream", body.stream_id)
        names[stream.id] = stream.name
    row = AlertSilenceRow(
        rule=body.rule, stream_id=body.stream_id, until=now() + timedelta(seconds=body.seconds), reason=body.reason,
        created_by=context.principal.name,
    )  # fmt: skip
    context.session.add(row)
    await context.session.flush()
    await context.session.refresh(row)
    silence = _resource(row, names)
    record(context, "alert_silences_create", ("alert_silence", row.id, _name(silence)), after=snapshot(silence))
    return Created(silence)


async def end_silence(context: Context, silence_id: str) -> None:
    row = await context.session.get(AlertSilenceRow, silence_id, with_for_update=True)
    if row is None or row.until <= now():
        raise not_found("silence", silence_id)
    names = await repository.stream_names(context.session, {row.stream_id} if row.stream_id else set())
    silence = _resource(row, names)
    row.until = now()
    record(context, "alert_silences_delete", ("alert_silence", row.id, _name(silence)), before=snapshot(silence))
