"""Writes the history: every second in one batch, every minute the roll-ups and the partitions.

It has a task of its own, so that a slow store holds no poll up. Samples that the store cannot take are given up, and
the engines are asked for them again once it can: they keep the last minutes themselves (workers/backfill.py).
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from thalweg.db.streams import former_ids
from thalweg.history import partitions, repository
from thalweg.history.document import Stored, decode, document_of, encode
from thalweg.history.rollup import roll_up
from thalweg.history.tiers import HOURS, MINUTES, SECONDS, TIERS, Tier, floor, kept
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.outside import outside
from thalweg.live.schemas import Sample
from thalweg.workers.survival import OUTAGES, in_brief

log = structlog.get_logger(__name__)
BATCH = 20_000
"""Samples in one transaction."""
ROLL_AFTER = timedelta(seconds=10)
"""A minute is rolled up so long after its end: its last samples are still on their way."""
LOOK_BACK = timedelta(days=1)
NOTHING_COMES = timedelta(seconds=10)
"""A writer that has had nothing to write for so long fails no longer: the streams are gone, say."""


class HistoryWriter:
    """Owner: the collector; `offer` and `run` belong to its event loop."""

    def __init__(self, resources: Resources, lost: Callable[[], None]) -> None:
        """`lost` is called when samples were given up: what engines still have of them is to be asked for again."""
        self._resources = resources
        self._lost = lost
        self._settings = resources.settings
        self._waiting: list[tuple[str, Sample]] = []
        self._catching_up: dict[str, int] = {}
        self.failing_since: datetime | None = None
        """The beginning of an outage of the store, during which nothing could be written. Turns without a sample do not
        end it: between two samples of a stream there are several."""
        self._failed_at: datetime | None = None
        self.failure: str | None = None
        self._covered: dict[Tier, partitions.Covered] = {}
        self._maintain_at: datetime | None = None
        self._touched: datetime | None = None
        self._looked_back = False

    def offer(self, engine_id: str, samples: list[Sample], *, missed: bool = False) -> None:
        """Takes one engine's samples, in the order of time for each stream. `missed`: they come from its memory, after
        a gap."""
        self._waiting += [(engine_id, sample) for sample in samples]
        if missed and samples:
            self._catching_up[engine_id] = self._catching_up.get(engine_id, 0) + len(samples)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._settings.poll_interval)
            try:
                wrote = await self.turn(now())
                if self._failed_at is not None and (wrote or now() - self._failed_at > NOTHING_COMES):
                    log.info("history is written again")
                    self.failing_since = self.failure = self._failed_at = None
            except OUTAGES as error:
                self._failed_at = now()
                self.failure = in_brief(error)
                if self.failing_since is None:
                    log.warning("history cannot be written", error=str(error))
                    self.failing_since = now()
                self._give_up()

    async def turn(self, at: datetime) -> bool:
        """Writes waiting samples; once a minute also does the maintenance. Whether there was a sample. Public for
        tests."""
        if self._maintain_at is None:
            await self._maintain(at)
        wrote = await self._write()
        if self._maintain_at is not None and at >= self._maintain_at:
            await self._maintain(at)
            await self._roll(SECONDS, MINUTES, at)
            await self._roll(MINUTES, HOURS, at)
            self._touched, self._looked_back = None, True
            self._maintain_at = floor(at, MINUTES.width) + MINUTES.width + ROLL_AFTER
        return wrote

    def _give_up(self) -> None:
        self._waiting.clear()
        self._catching_up.clear()
        self._touched = self._maintain_at = None
        self._looked_back = False
        self._lost()

    async def _maintain(self, at: datetime) -> None:
        for tier in TIERS:
            async with self._resources.sessions() as session:
                self._covered[tier] = await partitions.maintain(session, tier, at - kept(tier, self._settings), at)
                await session.commit()
        self._maintain_at = self._maintain_at or at

    async def _write(self) -> bool:
        waiting, self._waiting = self._waiting, []
        caught_up, self._catching_up = self._catching_up, {}
        for begin in range(0, len(waiting), BATCH):
            await self._write_batch(waiting[begin : begin + BATCH])
        for engine_id, samples in caught_up.items():
            log.info("history caught up", engine_id=engine_id, samples=samples)
        return bool(waiting)

    async def _write_batch(self, batch: list[tuple[str, Sample]]) -> None:
        covered = self._covered[SECONDS]
        outside("a thread")
        rows = await asyncio.to_thread(_stored, [item for item in batch if covered.begin <= item[1].at < covered.end])
        if rows:
            async with self._resources.sessions() as session:
                await repository.write(session, SECONDS, rows)
                await session.commit()
            oldest = min(row.at for row in rows)
            self._touched = min(self._touched or oldest, oldest)

    async def _roll(self, finer: Tier, coarser: Tier, at: datetime) -> None:
        """After a start a day is looked at, then what was written since the last time, and the last spans."""
        begin = min(self._touched or at, at - 2 * coarser.width) if self._looked_back else at - LOOK_BACK
        since = max(floor(begin, coarser.width), self._covered[coarser].begin)
        until = floor(at, coarser.width)
        while since < until:
            async with self._resources.sessions() as session:
                rows = await repository.unrolled(session, finer, coarser, since, until)
                if not rows:
                    return
                ids = await former_ids(session)
            outside("a thread")
            rolled = await asyncio.to_thread(_rolled, rows, ids, coarser)
            async with self._resources.sessions() as session:
                await repository.write(session, coarser, rolled)
                await session.commit()


def _stored(samples: list[tuple[str, Sample]]) -> list[Stored]:
    return [
        Stored(sample.stream_id, engine_id, sample.at, 1, encode(document_of(sample))) for engine_id, sample in samples
    ]


def _rolled(rows: list[Stored], ids: dict[str, dict[str, str]], coarser: Tier) -> list[Stored]:
    spans: dict[tuple[str, str, datetime], list[Stored]] = {}
    for row in rows:
        spans.setdefault((row.stream_id, row.engine_id, floor(row.at, coarser.width)), []).append(row)
    return [
        Stored(
            stream_id, engine_id, at, sum(row.samples for row in group),
            encode(roll_up([decode(row.document, ids.get(stream_id, {})) for row in group], at + coarser.width)),
            coarser.width,
        )
        for (stream_id, engine_id, at), group in spans.items()
    ]  # fmt: skip
