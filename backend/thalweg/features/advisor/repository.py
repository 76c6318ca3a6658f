"""SQL of the advisor."""

from datetime import datetime

from sqlalchemy import Select, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import undefer

from thalweg.db.models import AdvisorCureRow, AdvisorPolicyRow, AdvisorRunRow, AdvisorScheduleRow, StreamRow
from thalweg.db.streams import whole_streams
from thalweg.features.advisor.schemas import CureState
from thalweg.kernel.lifecycle import DesiredStatus

POLICY = 1


async def streams_of(session: AsyncSession, stream_id: str | None) -> list[StreamRow]:
    """Those that are not being deleted, by name."""
    query = whole_streams().where(StreamRow.desired_status != DesiredStatus.DROPPED).order_by(StreamRow.name)
    if stream_id is not None:
        query = query.where(StreamRow.id == stream_id)
    return list(await session.scalars(query))


def runs(
    stream_id: str | None, reason: str | None, begin: datetime | None, end: datetime | None
) -> Select[AdvisorRunRow]:
    query = select(AdvisorRunRow)
    if stream_id is not None:
        query = query.where(AdvisorRunRow.stream_ids.contains([stream_id]))
    if reason is not None:
        query = query.where(AdvisorRunRow.reason == reason)
    if begin is not None:
        query = query.where(AdvisorRunRow.at >= begin)
    if end is not None:
        query = query.where(AdvisorRunRow.at < end)
    return query


async def run_by_id(session: AsyncSession, run_id: int, *, whole: bool = False) -> AdvisorRunRow | None:
    query = select(AdvisorRunRow).where(AdvisorRunRow.id == run_id)
    if whole:
        query = query.options(undefer(AdvisorRunRow.document))
    return (await session.scalars(query)).one_or_none()


async def remove_run(session: AsyncSession, run_id: int) -> None:
    await session.execute(delete(AdvisorRunRow).where(AdvisorRunRow.id == run_id))


async def remove_outdated(session: AsyncSession, before: datetime, runs_max: int) -> int:
    """Removes what is older, and the oldest beyond so many; never what shall be kept. Gives how many."""
    newest = select(AdvisorRunRow.id).order_by(AdvisorRunRow.id.desc()).offset(runs_max).limit(1).scalar_subquery()
    outdated = or_(AdvisorRunRow.at < before, AdvisorRunRow.id <= func.coalesce(newest, 0))
    gone = await session.scalars(
        delete(AdvisorRunRow).where(outdated, AdvisorRunRow.kept.is_(False)).returning(AdvisorRunRow.id)
    )
    return len(gone.all())


async def policy(session: AsyncSession, *, lock: bool = False) -> AdvisorPolicyRow:
    """The one row; made at the first time that somebody changes it."""
    row = await session.get(AdvisorPolicyRow, POLICY, with_for_update=lock or None)
    return row or AdvisorPolicyRow(
        id=POLICY, retention_days=90, runs_max=20000, idle_threshold=50.0, flow_control_threshold=50.0,
        event_threshold=15.0, version=1,
    )  # fmt: skip


def schedules() -> Select[AdvisorScheduleRow]:
    return select(AdvisorScheduleRow)


async def due_schedules(session: AsyncSession, at: datetime) -> list[AdvisorScheduleRow]:
    query = schedules().where(AdvisorScheduleRow.enabled, AdvisorScheduleRow.next_at <= at)
    return list(await session.scalars(query.order_by(AdvisorScheduleRow.next_at, AdvisorScheduleRow.id)))


async def schedule_name_is_taken(session: AsyncSession, name: str, except_id: str = "") -> bool:
    query = select(AdvisorScheduleRow.id).where(AdvisorScheduleRow.name == name, AdvisorScheduleRow.id != except_id)
    return (await session.scalars(query)).first() is not None


def cures(stream_id: str | None) -> Select[AdvisorCureRow]:
    query = select(AdvisorCureRow)
    return query if stream_id is None else query.where(AdvisorCureRow.stream_id == stream_id)


async def cures_at_work(session: AsyncSession) -> list[int]:
    """Ids of those whose SQL has to run."""
    query = select(AdvisorCureRow.id).where(AdvisorCureRow.state.in_((CureState.APPLYING, CureState.UNDOING)))
    return list(await session.scalars(query.order_by(AdvisorCureRow.id)))


async def due_cures(session: AsyncSession, at: datetime) -> list[AdvisorCureRow]:
    query = select(AdvisorCureRow).where(AdvisorCureRow.measure_at <= at).order_by(AdvisorCureRow.measure_at)
    return list(await session.scalars(query))
