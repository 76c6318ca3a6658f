"""Each source is read at its own pace: one that never answers holds up no other."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.features.slots.service import why_no_forecast
from thalweg.inspection.slots import SlotState, SourceState
from thalweg.workers import sources
from thalweg.workers.sources import Seen, SourceWatch

LONGEST_SECONDS = 60
START = datetime(2026, 11, 29, tzinfo=UTC)


class Servers:
    """Answers for servers by their names; “hangs” never does."""

    def __init__(self, *names: str) -> None:
        self.databases = [SimpleNamespace(id=name) for name in names]
        self.asked: list[str] = []
        self.kept: dict[str, str | None] = {}

    async def read_slots(self, target: Any, timeout: int) -> SourceState:
        self.asked.append(target.name)
        if target.name.startswith("hangs"):
            await asyncio.Event().wait()
        return SourceState(system_identifier="1", version=170000, current_lsn=len(self.asked), slots={})


@asynccontextmanager
async def _session() -> AsyncGenerator[Any, None]:
    async def commit() -> None:
        pass

    yield SimpleNamespace(commit=commit)


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Callable[..., tuple[SourceWatch, Servers]], None]:
    begun: list[SourceWatch] = []

    def watch(*names: str) -> tuple[SourceWatch, Servers]:
        servers = Servers(*names)

        async def databases(_: Any) -> list[Any]:
            return servers.databases

        async def nothing(_: Any) -> dict[str, list[str]]:
            return {}

        async def keep_reading(_: Any, row: Any) -> None:
            servers.kept[row.database_id] = row.failure

        monkeypatch.setattr(sources, "OTHERS_EVERY", sources.timedelta(0))
        monkeypatch.setattr(sources, "read_slots", servers.read_slots)
        monkeypatch.setattr(sources, "target_of", lambda row, _: SimpleNamespace(name=row.id, each_server=[row]))
        fakes = {
            "databases": databases, "streams_of_sources": nothing, "tls_engines": nothing, "source_readings": nothing,
            "keep_reading": keep_reading,
        }  # fmt: skip
        for name, fake in fakes.items():
            monkeypatch.setattr(sources.repository, name, fake)
        settings = SimpleNamespace(database_connect_timeout=5, engine_timeout=5)
        watching = SourceWatch(SimpleNamespace(sessions=_session, settings=settings), Seen())  # type: ignore[arg-type]
        begun.append(watching)
        return watching, servers

    yield watch
    for source_watch in begun:
        await source_watch.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONGEST_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_one_that_never_answers_holds_up_no_other(watched: Any) -> None:
    watch, servers = watched("hangs", "well")
    for time in range(1, 4):
        async with asyncio.timeout(LONGEST_SECONDS):
            await watch.turn()
        await until(lambda time=time: servers.asked.count("well") == time and "well" not in watch._running)
    assert servers.asked.count("hangs") == 1, "it is not asked again while it is asked"
    assert servers.kept == {"well": None}


async def test_one_that_does_not_answer_in_time_is_kept_as_a_failure_and_asked_again(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "READ_SECONDS", -10.0)  # the deadline is over at once
    watch, servers = watched("hangs")
    for time in (1, 2):
        await watch.turn()
        await until(lambda time=time: servers.asked.count("hangs") == time and not watch._running)
    assert servers.kept == {"hangs": "There was no answer for 0 s."}


async def test_silent_ones_wait_for_each_other_only(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are silent, those that answered the last time need not wait for a place among them."""
    silent = [f"hangs {number}" for number in range(3 * sources.AT_ONCE_MAX)]
    watch, servers = watched(*silent, "well")
    watch._silent = set(silent)
    await watch.turn()
    await until(lambda: servers.kept.get("well", "") is None)
    assert len(servers.asked) == sources.AT_ONCE_MAX + 1


@pytest.mark.parametrize(
    ("moves", "waiting", "keeps_up"),
    [(True, 8 << 20, True), (False, 8 << 20, False), (False, 1 << 20, True)],
)
def test_a_reader_keeps_up_only_while_its_position_moves_or_nothing_waits(
    moves: bool, waiting: int, keeps_up: bool
) -> None:
    """As while flow control pauses capture: it holds the slot, and half of what is kept was confirmed before."""
    watch, restart = SourceWatch(SimpleNamespace(), Seen()), 1 << 30  # type: ignore[arg-type]
    for second in range(0, 95, 5):
        confirmed = restart + (20 << 20) + (second << 10 if moves else 0)
        end = confirmed + waiting
        slot = SlotState(
            name="s", active=True, wal_status="reserved", restart_lsn=restart, confirmed_lsn=confirmed,
            retained_bytes=end - restart, safe_bytes=1 << 30,
        )  # fmt: skip
        state = SourceState(system_identifier="1", current_lsn=end, slots={"s": slot})
        watch._take("db", state, START + timedelta(seconds=second))
    assert watch._seen.readings["db"].keeps_up(slot) is keeps_up
    said = why_no_forecast(watch._seen.readings["db"], slot)
    assert (said is not None and "keeps up" in said) is keeps_up


def test_a_position_that_had_nothing_to_move_for_has_not_stood_still() -> None:
    watch, confirmed = SourceWatch(SimpleNamespace(), Seen()), 1 << 30  # type: ignore[arg-type]
    for second, end in ((0, confirmed), (300, confirmed), (305, confirmed + (8 << 20))):
        slot = SlotState(
            name="s", active=True, wal_status="reserved", restart_lsn=confirmed - (20 << 20), confirmed_lsn=confirmed,
            retained_bytes=end - confirmed + (20 << 20), safe_bytes=1 << 30,
        )  # fmt: skip
        state = SourceState(system_identifier="1", current_lsn=end, slots={"s": slot})
        watch._take("db", state, START + timedelta(seconds=second))
    assert watch._seen.readings["db"].keeps_up(slot)
