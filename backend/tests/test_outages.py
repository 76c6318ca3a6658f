"""When an outage begins anew, and when one that comes back soon goes on."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from tests.test_last_latency import sample_at
from thalweg.db.models import EngineRow
from thalweg.history.outages import Subject, Trouble, note, outages_between
from thalweg.kernel.context import Resources
from thalweg.live.rates import UNKNOWN
from thalweg.live.schemas import Sample
from thalweg.workers.outages import Replicated

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


def look(second: int, phase: str, rate: float | None = None) -> Sample:
    sample = sample_at(NOON + timedelta(seconds=second), UNKNOWN)
    return sample.model_copy(update={"stream_id": "s1", "phase": phase, "lcrs_per_second": rate, "destinations": []})


@pytest.mark.parametrize(
    ("between", "joined"),
    [
        ([("REPLICATING", 0.0)] * 5, False),
        ([("CATCHING UP", 900.0)] * 5, False),
        ([("CATCHING UP", 0.0)] * 5, True),
        ([("INITIALIZING", None), ("CATCHING UP", 900.0), ("RETRYING", None)], True),
        ([], True),
    ],
)
def test_what_replicated_in_between_makes_two_outages_of_one(
    between: list[tuple[str, float | None]], joined: bool
) -> None:
    replicated, ended = Replicated(), NOON + timedelta(seconds=10)
    for second in range(5):
        replicated.note(look(second, "REPLICATING"), NOON + timedelta(seconds=second))
    for number, (phase, rate) in enumerate(between):
        replicated.note(look(10 + number, phase, rate), NOON + timedelta(seconds=10 + number))
    worked_at = replicated.worked_at("s1", None)
    assert worked_at is not None
    assert (ended > worked_at) is joined


async def test_each_outage_keeps_its_own_cause(resources: Resources) -> None:
    at = [NOON + timedelta(seconds=second) for second in (0, 10, 12, 30, 40)]
    async with resources.sessions() as session:
        subject = await engine_subject(session)
        await note(session, subject, None, TRIES, at[0], KEPT)
        await note(session, subject, TRIES, None, at[1], KEPT)
        await note(session, subject, None, STOPPED, at[3], KEPT, worked_at=at[2])
        await note(session, subject, STOPPED, None, at[4], KEPT)
        assert await told(session, subject, NOON, at[4]) == [("RETRYING", 0, 10), ("ABORTED", 30, 10)]


async def test_an_outage_keeps_its_first_cause_and_tells_what_it_has_become(resources: Resources) -> None:
    at = [NOON + timedelta(seconds=second) for second in range(0, 70, 10)]
    full = Trouble("RETRYING", "backlog_full", "The backlog is full.")
    fuller = Trouble("ABORTED", "backlog_full", "The backlog is full: 9 GiB.")
    async with resources.sessions() as session:
        subject = await engine_subject(session)

        async def causes() -> list[tuple[str, str, str | None, int | None]]:
            rows = await outages_between(session, "none", [str(subject.engine_id)], NOON, NOON + KEPT)
            return [
                (
                    row.state, row.reason, row.became,
                    None if row.became_at is None else round((row.became_at - NOON).total_seconds()),
                )
                for row in rows
            ]  # fmt: skip

        await note(session, subject, None, TRIES, at[0], KEPT)
        assert await causes() == [("RETRYING", TRIES.reason, None, None)]
        await note(session, subject, TRIES, full, at[1], KEPT)
        assert await causes() == [("RETRYING", TRIES.reason, full.reason, 10)]
        await note(session, subject, full, TRIES, at[2], KEPT)
        assert await causes() == [("RETRYING", TRIES.reason, None, None)], "the first again"
        await note(session, subject, TRIES, None, at[3], KEPT)
        await note(session, subject, None, STOPPED, at[4], KEPT)
        assert await causes() == [("ABORTED", TRIES.reason, STOPPED.reason, 40)], "it has come back soon"
        await note(session, subject, STOPPED, None, at[5], KEPT)
        await note(session, subject, None, full, at[6], KEPT, worked_at=at[5])
        await note(session, subject, full, fuller, at[6], KEPT)
        *_, last = await causes()
        assert last == ("ABORTED", full.reason, None, None), "the same error, in other words"
