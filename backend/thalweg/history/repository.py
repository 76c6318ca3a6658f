"""SQL of history: one statement writes a second of all streams, one reads a stream's range from each tier."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, literal, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import HistorySecondRow, StreamRow
from thalweg.db.streams import runs_on
from thalweg.history.document import Stored
from thalweg.history.tiers import SECONDS, TIERS, Tier


async def write(session: AsyncSession, tier: Tier, rows: Sequence[Stored]) -> None:
    """In one statement. A sample that is there stays; a roll-up is replaced: it was made from fewer samples."""
    rule = "NOTHING" if tier is SECONDS else "UPDATE SET samples = EXCLUDED.samples, document = EXCLUDED.document"
    target = "" if tier is SECONDS else "(stream_id, at, engine_id) "
    statement = text(
        f"INSERT INTO {tier.table} (stream_id, engine_id, at, samples, document) "  # noqa: S608
        "SELECT * FROM unnest(CAST(:streams AS text[]), CAST(:engines AS text[]), CAST(:ats AS timestamptz[]), "
        f"CAST(:samples AS integer[]), CAST(:documents AS bytea[])) ON CONFLICT {target}DO {rule}"
    )
    values = {
        "streams": [row.stream_id for row in rows], "engines": [row.engine_id for row in rows],
        "ats": [row.at for row in rows], "samples": [row.samples for row in rows],
        "documents": [row.document for row in rows],
    }  # fmt: skip
    # The engines still have the samples that a crash of the store loses.
    await session.execute(text("SET LOCAL synchronous_commit = off"))
    await session.execute(statement, values)


def _stored(found: Iterable[Any], tier: Tier) -> list[Stored]:
    return [Stored(row[0], row[1], row[2], row[3], row[4], tier.width) for row in found]


async def read(session: AsyncSession, tier: Tier, stream_id: str, since: datetime, until: datetime) -> list[Stored]:
    """Rows that tell of the time from `since` up to before `until`, in its order; parts of all engines."""
    row = tier.row
    # A second's row tells of the time before it, a roll-up's of the time after.
    begin, end = (since, until + tier.width) if tier is SECONDS else (since - tier.width, until)
    query = (
        select(row.stream_id, row.engine_id, row.at, row.samples, row.document)
        .where(row.stream_id == stream_id, row.at > begin, row.at < end)
        .order_by(row.at, row.engine_id)
    )
    return _stored(await session.execute(query), tier)


async def read_joined(
    session: AsyncSession, tier: Tier, stream_id: str, since: datetime, until: datetime
) -> list[Stored]:
    """From that tier, and what it does not have yet at the end from the finer ones."""
    rows: list[Stored] = []
    for finer in reversed(TIERS[: TIERS.index(tier) + 1]):
        if since < until:
            rows += await read(session, finer, stream_id, since, until)
            since = max(since, rows[-1].at + rows[-1].width) if rows and finer is not SECONDS else since
    return rows


async def newest_rows(session: AsyncSession, stream_id: str) -> list[Stored]:
    """The newest samples of a stream, enough to have one of each of its engines; in the order of time."""
    row = HistorySecondRow
    query = (
        select(row.stream_id, row.engine_id, row.at, row.samples, row.document)
        .where(row.stream_id == stream_id)
        .order_by(row.at.desc())
        .limit(8)
    )
    return _stored(await session.execute(query), SECONDS)[::-1]


async def newest(session: AsyncSession, engine_id: str, since: datetime) -> dict[str, datetime]:
    """For each stream that the engine runs, the time of the newest stored sample, if it is later than `since`."""
    row = HistorySecondRow
    last = (
        select(func.max(row.at))
        .where(row.stream_id == StreamRow.id, row.engine_id == literal(engine_id), row.at > since)
        .correlate(StreamRow)
        .scalar_subquery()
    )
    query = select(StreamRow.id, last).where(runs_on(engine_id))
    return {stream_id: at for stream_id, at in await session.execute(query) if at is not None}


async def unrolled(session: AsyncSession, finer: Tier, coarser: Tier, since: datetime, until: datetime) -> list[Stored]:
    """Rows of the finer tier in spans of the coarser that are not rolled up yet, or were from fewer rows; in order."""
    statement = text(
        f"""
        WITH counted AS (
            SELECT stream_id, engine_id, date_bin(:width, at, TIMESTAMPTZ 'epoch') AS span, sum(samples) AS samples
              FROM {finer.table} WHERE at >= :since AND at < :until GROUP BY 1, 2, 3
        ), due AS (
            SELECT stream_id, engine_id, span FROM counted
             WHERE NOT EXISTS (SELECT FROM {coarser.table} rolled
                                WHERE rolled.stream_id = counted.stream_id AND rolled.engine_id = counted.engine_id
                                  AND rolled.at = counted.span AND rolled.samples >= counted.samples)
             ORDER BY span LIMIT 500
        )
        SELECT fine.stream_id, fine.engine_id, fine.at, fine.samples, fine.document
          FROM due JOIN {finer.table} fine ON fine.stream_id = due.stream_id AND fine.engine_id = due.engine_id
           AND fine.at >= due.span AND fine.at < due.span + :width
         WHERE fine.at >= :since AND fine.at < :until
         ORDER BY fine.stream_id, fine.engine_id, fine.at
        """  # noqa: S608
    )
    values = {"width": coarser.width, "since": since, "until": until}
    return _stored(await session.execute(statement, values), finer)
