"""The elected collector's part of the lab: carries out at the demo's databases what is wanted, and ends it in time.

The wanted state is in the store, so a collector that was interrupted, or the next one, goes on where the last has got
to. A lock goes with the session that holds it, and that with the collector.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime

import psycopg
import structlog
from sqlalchemy import delete

from thalweg.db.audit import record_as
from thalweg.db.models import LabActionRow
from thalweg.features.lab import repository
from thalweg.features.lab.causes import CAUSES, Cause, CauseName
from thalweg.features.lab.repository import LOAD
from thalweg.features.lab.schemas import LabState
from thalweg.features.lab.service import state_of, target_of_action
from thalweg.inspection.connection import Connection, connected, read_row
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.row_values import state_quotes_rows
from thalweg.kernel.tasks import finish, stop_task
from thalweg.workers.survival import OUTAGES

log = structlog.get_logger(__name__)
TIME = Principal("", "time", Role.ADMIN, "system", "")
"""The actor that ends what no user has ended."""
SET_RATE = """
INSERT INTO lab.load (rate, until) VALUES (%(rate)s, now() + make_interval(secs => %(seconds)s))
    ON CONFLICT (one) DO UPDATE SET rate = excluded.rate, until = excluded.until
"""


@dataclass
class Seen:
    """The result of the last look at an action's row and database, to be stored."""

    in_effect: bool
    gone: bool = False
    over: bool = False
    failure: str | None = None


@dataclass
class Session:
    """One that holds a lock. Owner: its action's task."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    connection: Connection | None = None

    async def close(self) -> None:
        stack, self.stack, self.connection = self.stack, AsyncExitStack(), None
        await stack.aclose()


class LabWatch:
    """Owner: the collector. One task for each action, so that none waits for another one's locks."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def running(self) -> bool:
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    async def start(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                log.error("lab ended", exc_info=task.exception())
        await self.stop()
        self._tasks = [asyncio.create_task(self._keep(action), name=f"lab {action}") for action in (LOAD, *CauseName)]

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            await stop_task(task)

    async def _keep(self, action: str) -> None:
        session, down = Session(), False
        try:
            while True:
                try:
                    await self._turn(action, session)
                    down = False
                except OUTAGES as error:
                    if not down:
                        log.warning("lab pauses", action=action, error=str(error))
                    down = True
                await asyncio.sleep(self._resources.settings.poll_interval)
        finally:
            await finish(session.close())

    async def _turn(self, action: str, session: Session) -> None:
        async with self._resources.sessions() as store:
            row = await store.get(LabActionRow, action)
            demo = await repository.demo(store, self._resources.settings) if row is not None else None
        if row is None:
            return
        if demo is None:  # the stream was deleted; its databases may not even be there any more
            await session.close()
            await self._write(row, Seen(False, over=state_of(row, now()) is LabState.ENDING))
            return
        try:
            if action == LOAD:
                seen = await self._load(row, target_of(demo.source, self._resources))
            else:
                target = target_of(demo.destination, self._resources)
                seen = await self._cause(CAUSES[CauseName(action)], row, target, session)
        except ConnectionFailure as failure:
            await session.close()
            seen = Seen(
                row.in_effect_at is not None, row.gone, failure=f"{failure.message_without_rows} {failure.cure}"
            )
        except psycopg.Error as error:  # of a session that outlives the turn
            await session.close()
            hidden = error.sqlstate is not None and state_quotes_rows(error.sqlstate)
            message = f"The session has failed. Its SQLSTATE: {error.sqlstate}." if hidden else str(error).strip()
            seen = Seen(row.in_effect_at is not None, row.gone, failure=message)
        await self._write(row, seen)

    async def _load(self, row: LabActionRow, target: Target) -> Seen:
        state = state_of(row, now())
        if state is LabState.ON:
            return Seen(True)
        async with connected(target, self._timeout, read_only=False) as connection:
            if state is LabState.ENDING:
                await connection.execute("DELETE FROM lab.load")
                return Seen(False, over=True)
            seconds = (row.until - now()).total_seconds()
            await connection.execute(SET_RATE, {"rate": row.rate, "seconds": seconds})
        return Seen(True)

    async def _cause(self, cause: Cause, row: LabActionRow, target: Target, session: Session) -> Seen:
        state = state_of(row, now())
        if cause.in_session:
            return await self._in_session(cause, state, target, session)
        async with connected(target, self._timeout, read_only=False, limit=None) as connection:
            if state is LabState.ENDING:
                # However long what is being applied takes: it must be as before.
                await connection.execute("SET statement_timeout = 0")
                await _execute(connection, cause.end)
                return Seen(False, over=True)
            if state is LabState.STARTING:
                await _execute(connection, cause.beginning(row.delay_ms))
            return Seen(True, gone=not (await read_row(connection, cause.there))["there"])

    async def _in_session(self, cause: Cause, state: LabState, target: Target, session: Session) -> Seen:
        if state is LabState.ENDING:
            await session.close()
            return Seen(False, over=True)
        # One that is on without a session was another collector's, and ended with it.
        if state is LabState.STARTING or (state is LabState.ON and session.connection is None):
            await session.close()
            session.connection = await session.stack.enter_async_context(
                connected(target, self._timeout, read_only=False, limit=None)
            )
            await _execute(session.connection, cause.begin)
        return Seen(True, gone=state is LabState.GONE or not await _lasts(session, cause))

    async def _write(self, row: LabActionRow, seen: Seen) -> None:
        """Unless somebody wants something else since: that is carried out at the next turn."""
        at = now()
        async with self._resources.sessions() as store:
            kept = await store.get(LabActionRow, row.action, with_for_update=True)
            if kept is None or (kept.begun_at, kept.ended) != (row.begun_at, row.ended):
                return
            if seen.over:
                if not kept.ended:
                    before = {"until": kept.until.isoformat()}
                    record_as(store, TIME, "", None, "lab_end", target_of_action(kept.action), before, None)
                await store.execute(delete(LabActionRow).where(LabActionRow.action == row.action))
            else:
                kept.in_effect_at = _since(kept.in_effect_at, seen, at)
                kept.gone, kept.failure = seen.gone, seen.failure
            await store.commit()

    @property
    def _timeout(self) -> int:
        return self._resources.settings.database_connect_timeout


def _since(before: datetime | None, seen: Seen, at: datetime) -> datetime | None:
    if not seen.in_effect:
        return None
    return before or at


async def _execute(connection: Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        await connection.execute(statement.encode())


async def _lasts(session: Session, cause: Cause) -> bool:
    """False once the server has ended the session, as the advisor's cure does."""
    if session.connection is None:
        return False
    try:
        return bool((await read_row(session.connection, cause.there))["there"])
    except psycopg.OperationalError:
        await session.close()
        return False
