"""Schedules: runs that the elected collector takes every so often. And the policy: thresholds and retention."""

from datetime import timedelta
from typing import Any

from thalweg.db.audit import record
from thalweg.db.models import AdvisorPolicyRow, AdvisorScheduleRow
from thalweg.db.pages import page_by_name
from thalweg.features.advisor import repository
from thalweg.features.advisor.gathering import thresholds_of
from thalweg.features.advisor.schemas import (
    INTERVAL_SUGGESTED,
    Policy,
    PolicyUpdate,
    Schedule,
    ScheduleCreate,
    ScheduleUpdate,
)
from thalweg.features.advisor.service import check_scope
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match, etag_of
from thalweg.kernel.idempotency import Created
from thalweg.kernel.ids import new_id
from thalweg.kernel.models import Page
from thalweg.kernel.problems import name_taken, not_found


def _resource(row: AdvisorScheduleRow) -> Schedule:
    return Schedule(
        id=row.id, etag=etag_of(row.version), name=row.name, stream_id=row.stream_id,
        interval_seconds=row.interval_seconds, window_seconds=row.window_seconds, enabled=row.enabled,
        next_at=row.next_at if row.enabled else None, last_at=row.last_at, last_run_id=row.last_run_id,
        last_error=row.last_error,
    )  # fmt: skip


def _own(row: AdvisorScheduleRow) -> dict[str, Any]:
    names = ("name", "stream_id", "interval_seconds", "window_seconds", "enabled")
    return {name: getattr(row, name) for name in names}


async def list_schedules(context: Context, limit: int, cursor: str | None) -> Page[Schedule]:
    rows, following = await page_by_name(
        context.session, repository.schedules(), AdvisorScheduleRow.name, AdvisorScheduleRow.id, limit, cursor
    )
    return Page[Schedule](items=[_resource(row) for row in rows], next_cursor=following)


async def _existing(context: Context, schedule_id: str) -> AdvisorScheduleRow:
    row = await context.session.get(AdvisorScheduleRow, schedule_id, with_for_update=True)
    if row is None:
        raise not_found("advisor schedule", schedule_id)
    return row


async def create_schedule(context: Context, body: ScheduleCreate) -> Created:
    await check_scope(context, body.stream_id, None)
    if await repository.schedule_name_is_taken(context.session, body.name):
        raise name_taken("advisor schedule", body.name)
    row = AdvisorScheduleRow(id=new_id(), **body.model_dump(), next_at=now(), version=1, updated_at=now())
    context.session.add(row)
    await context.session.flush()
    record(context, "advisor_schedules_create", ("advisor_schedule", row.id, row.name), after=_own(row))
    return Created(_resource(row))


async def get_schedule(context: Context, schedule_id: str) -> Schedule:
    row = await context.session.get(AdvisorScheduleRow, schedule_id)
    if row is None:
        raise not_found("advisor schedule", schedule_id)
    return _resource(row)


async def update_schedule(context: Context, schedule_id: str, body: ScheduleUpdate, if_match: str | None) -> Schedule:
    row = await _existing(context, schedule_id)
    check_if_match(if_match, row.version)
    before = _own(row)
    changes = body.model_dump(exclude_none=True)
    if body.name is not None and await repository.schedule_name_is_taken(context.session, body.name, row.id):
        raise name_taken("advisor schedule", body.name)
    for name, value in changes.items():
        setattr(row, name, value)
    since = row.last_at or now()
    row.next_at = max(now(), since + timedelta(seconds=row.interval_seconds))
    row.version += 1
    row.updated_at = now()
    await context.session.flush()
    record(context, "advisor_schedules_update", ("advisor_schedule", row.id, row.name), before, _own(row))
    return _resource(row)


async def delete_schedule(context: Context, schedule_id: str) -> None:
    row = await _existing(context, schedule_id)
    record(context, "advisor_schedules_delete", ("advisor_schedule", row.id, row.name), before=_own(row))
    await context.session.delete(row)


def _policy(row: AdvisorPolicyRow) -> Policy:
    return Policy(
        etag=etag_of(row.version), retention_days=row.retention_days, runs_max=row.runs_max,
        thresholds=thresholds_of(row), interval_seconds_suggested=INTERVAL_SUGGESTED,
    )  # fmt: skip


async def get_policy(context: Context) -> Policy:
    return _policy(await repository.policy(context.session))


async def update_policy(context: Context, body: PolicyUpdate, if_match: str | None) -> Policy:
    row = await repository.policy(context.session, lock=True)
    check_if_match(if_match, row.version)
    changes = body.model_dump(exclude_none=True)
    before = {name: getattr(row, name) for name in changes}
    for name, value in changes.items():
        setattr(row, name, value)
    row.version += 1
    context.session.add(row)
    await context.session.flush()
    record(context, "advisor_policy_update", ("advisor_policy", "policy", "policy"), before, changes)
    return _policy(row)
