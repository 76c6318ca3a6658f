"""Cures that were applied: written down before and after, and judged. Applying spans features: see workflows."""

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.advisor.finding import Finding, NewIndex
from thalweg.advisor.findings.codes import FindingCode
from thalweg.db.models import AdvisorCureRow, AdvisorRunRow
from thalweg.db.pages import page_newest_first
from thalweg.features.advisor import repository
from thalweg.features.advisor.gathering import Span
from thalweg.features.advisor.judging import Judgement, judge
from thalweg.features.advisor.presentation import run_of
from thalweg.features.advisor.schemas import AppliedCure, CureState, RunReason, RunScope
from thalweg.features.advisor.taking import RunRequest, keep_run, take_run
from thalweg.inspection.indexes import IndexName
from thalweg.kernel.context import Context, Resources
from thalweg.kernel.models import Page
from thalweg.kernel.problems import not_found

MEASURE_WITHIN = timedelta(hours=1)


def index_of(row: AdvisorCureRow) -> IndexName:
    """The index of a cure that creates one."""
    named = NewIndex.model_validate(row.index_name)
    return IndexName(named.schema_name, named.table, named.name)


def by_hand(row: AdvisorCureRow) -> bool:
    return row.index_name is None and not row.parameters_after


def resource_of(row: AdvisorCureRow) -> AppliedCure:
    return AppliedCure(
        id=row.id, created_at=row.created_at, applied_by=row.applied_by, run_id=row.run_id,
        finding=Finding.model_validate(row.finding), stream_id=row.stream_id, path_id=row.path_id,
        parameters_before=row.parameters_before, parameters_after=row.parameters_after,
        destination_id=row.destination_id, by_hand=by_hand(row), sql=row.sql, operation_id=row.operation_id,
        undo_sql=index_of(row).drop_sql if row.index_name is not None else None,
        state=CureState(row.state), before_run_id=row.before_run_id, after_run_id=row.after_run_id,
        measure_at=row.measure_at, outcome=row.outcome, undone_at=row.undone_at,
    )  # fmt: skip


async def list_cures(context: Context, stream_id: str | None, limit: int, cursor: str | None) -> Page[AppliedCure]:
    rows, following = await page_newest_first(
        context.session, repository.cures(stream_id), AdvisorCureRow.id, limit, cursor
    )
    return Page[AppliedCure](items=[resource_of(row) for row in rows], next_cursor=following)


async def existing_cure(context: Context, cure_id: int, *, lock: bool = False) -> AdvisorCureRow:
    row = await context.session.get(AdvisorCureRow, cure_id, with_for_update=lock or None)
    if row is None:
        raise not_found("cure", str(cure_id))
    return row


async def measure(session: AsyncSession, resources: Resources, cure_id: int, at: datetime) -> None:
    """Takes the second snapshot and judges. Called by the collector when it is due."""
    row = await session.get(AdvisorCureRow, cure_id)
    if row is None:
        return
    after = await _snapshot_after(session, resources, row)
    row = await session.get(AdvisorCureRow, cure_id, with_for_update=True, populate_existing=True)
    if row is not None and row.measure_at is not None and row.measure_at <= at:  # else it was taken back meanwhile
        await _judge(session, row, await keep_run(session, after), at)


async def _snapshot_after(session: AsyncSession, resources: Resources, row: AdvisorCureRow) -> AdvisorRunRow:
    seconds = row.measure_seconds
    scope = RunScope(stream_id=row.stream_id, component_id=None, window_seconds=seconds)
    request = RunRequest(
        scope, Span(seconds=seconds), RunReason.AFTER_CURE, row.applied_by, detail=row.finding["title"], facts=True
    )
    return await take_run(session, resources, request)


async def _judge(session: AsyncSession, row: AdvisorCureRow, after: AdvisorRunRow, at: datetime) -> None:
    if row.after_run_id is not None:
        await repository.remove_run(session, row.after_run_id)  # it told nothing
    before = None
    if row.before_run_id is not None:
        before = await repository.run_by_id(session, row.before_run_id, whole=True)
    row.after_run_id = after.id
    if before is None:
        judgement = Judgement(CureState.NOT_MEASURED, "The snapshot before the change is gone.")
    else:
        judgement = judge(run_of(before), run_of(after), row.path_id, FindingCode(row.finding["code"]))
    if judgement.state is CureState.MEASURING and at - row.created_at < MEASURE_WITHIN:
        row.measure_at, row.outcome = at + timedelta(seconds=row.measure_seconds), judgement.outcome
        return
    state = CureState.NOT_MEASURED if judgement.state is CureState.MEASURING else judgement.state
    row.state, row.outcome, row.measure_at = state, judgement.outcome, None
