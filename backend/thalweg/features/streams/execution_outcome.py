"""The outcome of an execution of parked transactions, as far as it still holds."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import httpx
import structlog
from sqlalchemy import select

from thalweg.db.models import AuditRow
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.parked_documents import ErrorExecution, ExecutionFailure, ExecutionReport, ParkedErrors
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import ExecutionOutcome, ExecutionState

ROOTS_READ = 1000
UNKNOWN = {"state": ExecutionOutcome.UNKNOWN}
EXECUTIONS = ("stream_errors_execute", "stream_errors_execute_all", "stream_errors_execute_cause")
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Choice:
    """The part of a destination's queue that is executed, and the role as which it is."""

    stream_id: str
    destination_id: str
    error_id: int | None = None
    cause: str | None = None
    role: str | None = None

    def is_of(self, execution: ErrorExecution) -> bool:
        return (execution.error_id, execution.cause or None, execution.role or None) == (
            self.error_id, self.cause, self.role,
        )  # fmt: skip


async def executed_of(
    client: EngineClient, choice: Choice, asked: Awaitable[ExecutionReport]
) -> ExecutionReport | ErrorExecution:
    """The engine's report. Engines answer with the failure's error where a transaction failed again, even if others
    had been applied by then: that is no refusal, and the execution is returned. Raises EngineFailure."""
    try:
        return await asked
    except EngineFailure as failure:
        if failure.status != httpx.codes.CONFLICT:
            raise
        try:
            execution = (await client.errors(choice.stream_id, choice.destination_id, 0, 1, False)).execution
        except EngineFailure:
            raise failure from None  # what the engine said is known; what it did is not
        if execution is None or execution.error is None or not choice.is_of(execution) or not execution.executed:
            raise
        # An execution that was refused leaves the one before it in its place.
        message = execution.error.detail or execution.error.message
        if (execution.error.code, message) != (failure.code, failure.message):
            raise
        return execution


async def still_true(
    client: EngineClient, stream_id: str, destination_id: str, parked: ParkedErrors
) -> ErrorExecution | None:
    """The last execution without the failures that have left the queue since: a copy of their tables has settled them,
    or somebody has discarded them. None: nothing of its failures is left. Raises EngineFailure."""
    execution = parked.execution
    if execution is None or execution.state != ExecutionState.FAILED:
        return execution
    if not parked.total:
        return None
    if not execution.failures:
        return execution
    first = min(failure.error_id for failure in execution.failures)
    roots = await client.errors(stream_id, destination_id, first - 1, ROOTS_READ, roots_only=True)
    left = [failure for failure in execution.failures if _may_be_among(roots, failure)]
    gone = len(execution.failures) - len(left)
    failed_again = None if execution.failed_again is None else execution.failed_again - gone
    if not left and not failed_again:
        return None
    error = execution.error if not gone or not left else left[0].error
    return execution.model_copy(update={"failures": left, "failed_again": failed_again, "error": error})


def _may_be_among(roots: ParkedErrors, failure: ExecutionFailure) -> bool:
    """A transaction that failed by itself waits behind no other. Beyond the end of the page nothing is known."""
    beyond = roots.next_after is not None and failure.error_id > roots.next_after
    return beyond or any(error.id == failure.error_id for error in roots.errors)


async def outcome_of(client: EngineClient, stream_id: str, facts: dict[str, Any]) -> dict[str, Any] | None:
    """None: it still runs, or the engine does not answer. An engine knows only its last execution since its start."""
    try:
        execution = (await client.errors(stream_id, facts["destination_id"], 0, 1, False)).execution
    except EngineFailure as failure:
        log.info("the outcome of an execution cannot be read", stream=stream_id, error=failure.message)
        return None
    if execution is None or execution.started_at.isoformat() != facts["started_at"]:
        return UNKNOWN
    if execution.state == ExecutionState.RUNNING:
        return None
    outcome = {
        "state": ExecutionOutcome(execution.state),
        "executed": execution.executed,
        "failed_again": execution.failed_again,
    }
    return outcome if execution.error is None else {**outcome, "code_of_failure": execution.error.code}


async def settle_open(context: Context, client: EngineClient, stream_id: str, destination_id: str) -> None:
    """Writes what became of earlier executions before another one begins: the engine knows only its last."""
    running = select(AuditRow).where(
        AuditRow.after["state"].astext == ExecutionOutcome.RUNNING, AuditRow.action.in_(EXECUTIONS),
        AuditRow.target_id == stream_id, AuditRow.after["destination_id"].astext == destination_id,
    )  # fmt: skip
    entries = (await context.session.scalars(running)).all()
    await context.release()
    for entry in entries:
        outcome = await outcome_of(client, stream_id, entry.after or {})
        if outcome is not None:
            entry.after = {**(entry.after or {}), **outcome}
            await context.release()
