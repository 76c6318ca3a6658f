"""The elected collector's part in cures that create an index: runs their SQL at the destination, one at a database.

Work that a new leader or a crash interrupted goes on: the cure's state says what is wanted, and the destination what is
there (inspection/indexes).
"""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import AdvisorCureRow, DatabaseRow, OperationRow
from thalweg.db.operations import begin, finish
from thalweg.features.advisor import repository
from thalweg.features.advisor.cures import index_of
from thalweg.features.advisor.schemas import CureState
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.indexes import IndexProgress, create_index, drop_index
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.lifecycle import UNFINISHED, OperationState
from thalweg.kernel.problems import TITLES
from thalweg.kernel.tasks import stop_task

log = structlog.get_logger(__name__)


class CureWorker:
    """Owner: the advisor's watch. One task for each cure that is at work."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def turn(self) -> None:
        for cure_id in [cure_id for cure_id, task in self._tasks.items() if task.done()]:
            ended = self._tasks.pop(cure_id)
            if not ended.cancelled() and ended.exception() is not None:
                log.warning("cure is tried again", cure_id=cure_id, error=str(ended.exception()))
        async with self._resources.sessions() as session:
            wanted = await repository.cures_at_work(session)
        for cure_id in wanted:
            if cure_id not in self._tasks:
                self._tasks[cure_id] = asyncio.create_task(self._carry_out(cure_id), name=f"cure {cure_id}")

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            await stop_task(task)

    async def _carry_out(self, cure_id: int) -> None:
        async with self._resources.sessions() as session:
            row = await session.get(AdvisorCureRow, cure_id)
            if row is None:
                return
            database = await session.get(DatabaseRow, row.database_id)
            target = target_of(database, self._resources) if database is not None else None
            await self._begin(session, row)
            await session.commit()
        failure = None
        try:
            await self._run(row, target)
        except ConnectionFailure as error:
            failure = error
        async with self._resources.sessions() as session:
            again = await session.get(AdvisorCureRow, cure_id, with_for_update=True)
            if again is not None:  # else its stream was deleted meanwhile
                _conclude(again, failure)
            await _finish(session, row.operation_id, failure)
            await session.commit()

    async def _begin(self, session: AsyncSession, row: AdvisorCureRow) -> None:
        operation = await session.get(OperationRow, row.operation_id)
        if operation is not None and operation.state == OperationState.PENDING:
            begin(operation, now())

    async def _run(self, row: AdvisorCureRow, target: Target | None) -> None:
        if target is None:
            raise ConnectionFailure("database_error", "The database is not registered any more.", "Register it.")
        timeout = self._resources.settings.database_connect_timeout
        if row.state == CureState.UNDOING:
            await drop_index(target, index_of(row), timeout)
        else:
            await create_index(target, index_of(row), row.sql or "", timeout, partial(self._tell, row))

    async def _tell(self, row: AdvisorCureRow, progress: IndexProgress) -> None:
        async with self._resources.sessions() as session:
            operation = await session.get(OperationRow, row.operation_id)
            cure = await session.get(AdvisorCureRow, row.id)
            if operation is not None and cure is not None:
                operation.done, cure.outcome = progress.step, f"Creating the index: {progress.text}."
            await session.commit()


def _conclude(row: AdvisorCureRow, failure: ConnectionFailure | None) -> None:
    """The second snapshot comes once the path has run with the index."""
    at, undoing = now(), row.state == CureState.UNDOING
    row.outcome = None if failure is None else f"{failure.message_without_rows} {failure.cure}"
    if undoing:
        row.state = CureState.UNDONE if failure is None else CureState.NOT_MEASURED
        row.undone_at = at if failure is None else None
    elif failure is None:
        row.state, row.measure_at = CureState.MEASURING, at + timedelta(seconds=row.measure_seconds)
    else:
        row.state = CureState.FAILED


async def _finish(session: AsyncSession, operation_id: str | None, failure: ConnectionFailure | None) -> None:
    operation = await session.get(OperationRow, operation_id)
    if operation is not None and operation.state in UNFINISHED:  # else its cure was deleted meanwhile (overdue.py)
        state = OperationState.SUCCEEDED if failure is None else OperationState.FAILED
        finish(operation, state, None if failure is None else _error_document(failure))


def _error_document(failure: ConnectionFailure) -> dict[str, Any]:
    cure = f"{failure.cure} {failure.sql}" if failure.sql else failure.cure
    message = failure.message_without_rows
    detail = failure.message if failure.message != message else None
    title = TITLES[failure.code][1]
    return {"code": failure.code, "title": title, "message": message, "cure": cure, "detail": detail}
