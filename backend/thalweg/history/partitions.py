"""Partitions of history: made ahead of time, and dropped when all that they hold is too old."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.history.tiers import Tier, floor

AHEAD = 2
"""Partitions beyond the present one: the collector may be away for so long, and clocks of engines ahead."""
LOCK_TIMEOUT = "2s"
"""Making and dropping lock the whole table for a moment: they come again a minute later rather than queue before
every reader."""


@dataclass(frozen=True)
class Covered:
    """The time for which a tier has partitions: half open."""

    begin: datetime
    end: datetime


def wanted(tier: Tier, oldest: datetime, now: datetime) -> Covered:
    return Covered(floor(oldest, tier.partition), floor(now, tier.partition) + (1 + AHEAD) * tier.partition)


def _name(tier: Tier, begin: datetime) -> str:
    return f"{tier.table}_{begin:%Y%m%d_%H%M}"


def begin_of(tier: Tier, name: str) -> datetime:
    return datetime.strptime(name, f"{tier.table}_%Y%m%d_%H%M").replace(tzinfo=UTC)


async def present(session: AsyncSession, tier: Tier) -> list[str]:
    """Names of the partitions that there are: they sort by time."""
    statement = text(
        "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
        "WHERE inhparent = to_regclass(:table) ORDER BY 1"
    )
    return list(await session.scalars(statement, {"table": tier.table}))


async def maintain(session: AsyncSession, tier: Tier, oldest: datetime, now: datetime) -> Covered:
    """In the caller's transaction. Partitions that end before `oldest` go."""
    covered, there = wanted(tier, oldest, now), await present(session, tier)
    names = {}
    begin = covered.begin
    while begin < covered.end:
        names[_name(tier, begin)] = begin
        begin += tier.partition
    missing = [name for name in names if name not in there]
    gone = [name for name in there if name < min(names)]
    if missing or gone:
        await session.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
    for name in missing:
        end = names[name] + tier.partition
        await session.execute(
            text(
                f"CREATE TABLE {name} PARTITION OF {tier.table} "
                f"FOR VALUES FROM ('{names[name].isoformat()}') TO ('{end.isoformat()}')"
            )
        )
    for name in gone:
        await session.execute(text(f"DROP TABLE {name}"))
    return covered


async def size_bytes(session: AsyncSession, tier: Tier) -> int:
    """On the store's disk, indexes and TOAST included."""
    statement = text(
        "SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint FROM pg_inherits "
        "WHERE inhparent = to_regclass(:table)"
    )
    return int((await session.execute(statement, {"table": tier.table})).scalar_one())
