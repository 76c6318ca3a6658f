"""When an outage begins anew, and when one that comes back soon goes on."""

from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow
from thalweg.history.outages import Subject, Trouble, note, outages_between
from thalweg.kernel.context import Resources

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEPT = timedelta(days=1)
TRIES = Trouble("RETRYING", "connection_lost", "The connection broke.")
STOPPED = Trouble("ABORTED", "apply_failed", "The destination refused a change.")


async def engine_subject(session: AsyncSession) -> Subject:
    row = EngineRow(name="local", url="http://127.0.0.1:1", control_token_sealed="x")
    session.add(row)
    await session.flush()
    return Subject(row.name, engine_id=row.id)


async def told(session: AsyncSession, subject: Subject, since: datetime, until: datetime) -> list[tuple[str, int, int]]:
    """(state, begin, length) in seconds from noon; a length of -1 has no end."""
    assert subject.engine_id is not None
    return [
        (
            row.state, round((row.began_at - NOON).total_seconds()),
            -1 if row.ended_at is None else round((row.ended_at - row.began_at).total_seconds()),
        )
        for row in await outages_between(session, "none", [subject.engine_id], since, until)
    ]  # fmt: skip


async def test_what_comes_back_soon_is_the_same_outage(resources: Resources) -> None:
    at = [NOON + timedelta(seconds=second) for second in (0, 10, 15, 40, 300, 310)]
    async with resources.sessions() as session:
        subject = await engine_subject(session)
        await note(session, subject, None, TRIES, at[0], KEPT)
        await note(session, subject, TRIES, None, at[1], KEPT)
        await note(session, subject, None, TRIES, at[2], KEPT)
        await note(session, subject, TRIES, STOPPED, at[3], KEPT)
        assert await told(session, subject, NOON, at[5]) == [("ABORTED", 0, -1)]
        await note(session, subject, STOPPED, None, at[3], KEPT)
        await note(session, subject, None, TRIES, at[4], KEPT)
        await note(session, subject, TRIES, None, at[5], KEPT)
        assert await told(session, subject, NOON, at[5]) == [("ABORTED", 0, 40), ("RETRYING", 300, 10)]
        assert await told(session, subject, at[3] + timedelta(seconds=1), at[4]) == []
        later = at[5] + KEPT
        await note(session, subject, None, TRIES, later, KEPT)
        assert await told(session, subject, NOON, later) == [("RETRYING", 300, 10)], "the oldest are forgotten"
