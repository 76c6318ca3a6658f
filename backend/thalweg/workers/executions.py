"""Writes to the audit log what became of executions of parked transactions that took longer than their requests: into
the entry of the request, once it is known."""

from datetime import datetime, timedelta

from sqlalchemy import select

from thalweg.db.models import AuditRow, EngineRow
from thalweg.db.streams import streams_by_id
from thalweg.engine_client.access import client_of
from thalweg.engine_client.client import EngineClient
from thalweg.features.streams.execution_outcome import EXECUTIONS, UNKNOWN, outcome_of
from thalweg.kernel.context import Resources
from thalweg.kernel.lifecycle import ExecutionOutcome
from thalweg.workers.repeating import Repeating

LOOK_EVERY_SECONDS = 5.0
GIVE_UP_AFTER = timedelta(hours=24)
"""After it, the outcome stays unknown: the engine has not answered since, or still executes."""


class ExecutionWatch:
    """Owner: the collector. Runs while that leads; a slow engine holds up no poll."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._repeating = Repeating("executions", self.turn, LOOK_EVERY_SECONDS)

    @property
    def running(self) -> bool:
        return self._repeating.running

    def start(self) -> None:
        self._repeating.start()

    async def stop(self) -> None:
        await self._repeating.stop()

    async def turn(self, at: datetime) -> None:
        """One look at each execution whose outcome is not known yet."""
        running = select(AuditRow.id).where(
            AuditRow.after["state"].astext == ExecutionOutcome.RUNNING, AuditRow.action.in_(EXECUTIONS)
        )
        async with self._resources.sessions() as session:
            entries = (await session.scalars(running.order_by(AuditRow.id))).all()
        for entry_id in entries:
            await self._look(entry_id, at)

    async def _look(self, entry_id: int, at: datetime) -> None:
        async with self._resources.sessions() as session:
            entry = await session.get(AuditRow, entry_id)
            if entry is None or entry.after is None:
                return
            facts = entry.after
            stream = (await streams_by_id(session, [entry.target_id])).get(entry.target_id)
            destination = None if stream is None else stream.destination(facts["destination_id"])
            client = None if destination is None else self._client_of(destination.engine)
            await session.commit()
            outcome = UNKNOWN if client is None else await outcome_of(client, entry.target_id, facts)
            if outcome is None and at - entry.at > GIVE_UP_AFTER:
                outcome = UNKNOWN
            if outcome is not None:
                entry.after = {**facts, **outcome}
                await session.commit()

    def _client_of(self, engine: EngineRow) -> EngineClient:
        resources = self._resources
        return client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
