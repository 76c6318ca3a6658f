"""Outages: begun and ended by the collector, read by charts."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import OutageRow
from thalweg.kernel.lifecycle import OutageState

SAME = timedelta(seconds=60)
"""One that comes back so soon goes on, unless it is known to have worked: between two tries nothing does."""
SHOWN_MAX = 200


@dataclass(frozen=True)
class Subject:
    """A stream, one of its destinations (both ids), or an engine."""

    name: str
    stream_id: str | None = None
    destination_id: str | None = None
    engine_id: str | None = None

    @property
    def rows(self) -> ColumnElement[bool]:
        return and_(
            OutageRow.stream_id.is_not_distinct_from(self.stream_id),
            OutageRow.destination_id.is_not_distinct_from(self.destination_id),
            OutageRow.engine_id.is_not_distinct_from(self.engine_id),
        )


@dataclass(frozen=True)
class Trouble:
    """`code` tells one error from another."""

    state: OutageState
    code: str
    reason: str


async def note(
    session: AsyncSession,
    subject: Subject,
    before: Trouble | None,
    after: Trouble | None,
    at: datetime,
    kept: timedelta,
    worked_at: datetime | None = None,
) -> None:
    """Writes what has changed between two looks. Outages that ended longer than `kept` ago are forgotten. `worked_at`:
    what had ended by then is over, however soon the next one begins."""
    if before is not None and after is None:
        of_open = update(OutageRow).where(subject.rows, OutageRow.ended_at.is_(None))
        await session.execute(of_open.values(ended_at=at))
    elif before is None and after is not None:
        since = at - SAME if worked_at is None else max(at - SAME, worked_at)
        await _begin(session, subject, after, at, kept, since)
    elif after is not None and before is not None and (before.state, before.code) != (after.state, after.code):
        for row in await session.scalars(select(OutageRow).where(subject.rows, OutageRow.ended_at.is_(None))):
            _go_on(row, after, at)


async def _begin(
    session: AsyncSession, subject: Subject, trouble: Trouble, at: datetime, kept: timedelta, since: datetime
) -> None:
    """One that ended after `since` goes on."""
    await session.execute(delete(OutageRow).where(OutageRow.ended_at < at - kept))
    last = (
        select(OutageRow)
        .where(subject.rows, or_(OutageRow.ended_at.is_(None), OutageRow.ended_at > since))
        .order_by(OutageRow.began_at.desc())
        .limit(1)
    )
    row = await session.scalar(last)
    if row is not None:
        row.ended_at = None
        _go_on(row, trouble, at)
        return
    session.add(
        OutageRow(
            stream_id=subject.stream_id, destination_id=subject.destination_id, engine_id=subject.engine_id,
            name=subject.name, began_at=at, state=trouble.state, code=trouble.code, reason=trouble.reason,
        )
    )  # fmt: skip


def _go_on(row: OutageRow, trouble: Trouble, at: datetime) -> None:
    """The first cause stays: what is wrong now may only follow from it."""
    row.state = trouble.state
    is_first = trouble.reason == row.reason or (bool(trouble.code) and trouble.code == row.code)
    became = None if is_first else trouble.reason
    if became != row.became:
        row.became, row.became_at = became, None if became is None else at


async def outages_between(
    session: AsyncSession, stream_id: str, engine_ids: Collection[str], since: datetime, until: datetime
) -> list[OutageRow]:
    """Those of the stream and of its engines that reach into the range, the oldest first; the newest of too many."""
    query = (
        select(OutageRow)
        .where(
            or_(OutageRow.stream_id == stream_id, OutageRow.engine_id.in_(engine_ids)),
            OutageRow.began_at < until,
            or_(OutageRow.ended_at.is_(None), OutageRow.ended_at > since),
        )
        .order_by(OutageRow.began_at.desc())
        .limit(SHOWN_MAX)
    )
    return list(await session.scalars(query))[::-1]
