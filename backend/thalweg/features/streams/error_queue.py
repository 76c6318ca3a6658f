"""A destination's error queue, read and worked through the engine that applies there."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import structlog
from redis.exceptions import RedisError

from thalweg.db.audit import record
from thalweg.db.models import AuditRow, StreamRow
from thalweg.engine_client.access import client_of, problem_for, problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.documents import EngineError
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.parked_documents import DryRun as EngineDryRun
from thalweg.engine_client.parked_documents import ErrorExecution as EngineExecution
from thalweg.engine_client.parked_documents import ExecutionReport, ParkedError
from thalweg.engine_client.parked_documents import ParkedCause as EngineCause
from thalweg.features.streams.error_causes import BY_ROW, likely
from thalweg.features.streams.error_queue_schemas import (
    DryRun,
    ErrorCause,
    ErrorExecution,
    ExecutionAccepted,
    ExecutionFailure,
    ParkedContents,
    ParkedDependant,
    ParkedTransaction,
    ParkedTransactions,
    ParkedTree,
)
from thalweg.features.streams.execution_outcome import Choice, executed_of, settle_open, still_true
from thalweg.features.streams.service import existing_destination, existing_stream
from thalweg.kernel.context import Context
from thalweg.kernel.etags import etag_of
from thalweg.kernel.lifecycle import ExecutionOutcome, ExecutionState
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.pagination import decode_cursor, encode_cursor
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import Problem
from thalweg.live.bus import Bus

CHANGE_THE_NUMBER = (
    "stream_errors_execute", "stream_errors_execute_all", "stream_errors_execute_cause", "stream_errors_delete",
)  # fmt: skip
log = structlog.get_logger(__name__)


async def engine_of(context: Context, stream_id: str, destination_id: str) -> tuple[StreamRow, EngineClient]:
    row = await existing_stream(context, stream_id)
    destination = existing_destination(row, destination_id)
    resources = context.resources
    client = client_of(destination.engine, resources.http, resources.secrets, resources.settings.engine_timeout)
    await context.release()
    return row, client


async def list_errors(
    context: Context, stream_id: str, destination_id: str, limit: int, cursor: str | None, roots_only: bool,
    cause: str | None,
) -> ParkedTransactions:  # fmt: skip
    after = 0 if cursor is None else int(decode_cursor(cursor, int)[0])
    _, client = await engine_of(context, stream_id, destination_id)
    try:
        parked = await client.errors(stream_id, destination_id, after, limit, roots_only, cause)
        execution = await still_true(client, stream_id, destination_id, parked)
    except EngineFailure as failure:
        raise problem_for(context.principal, failure) from failure
    reveals = context.principal.role.covers(Role.OPERATOR)
    return ParkedTransactions(
        errors=[shown(error, reveals) for error in parked.errors],
        total=parked.total,
        roots=parked.roots,
        causes=parked.causes and [_cause(cause, reveals) for cause in parked.causes],
        next_cursor=None if parked.next_after is None else encode_cursor(parked.next_after),
        execution=execution and _execution(execution, reveals),
    )


def _cause(cause: EngineCause, reveals: bool) -> ErrorCause:
    """The object's name comes out of a message that may quote rows."""
    kind, title, cure = likely(cause.code, cause.sqlstate, cause.object)
    shown_object = (cause.object or None) if reveals and cause.object not in BY_ROW else None
    return ErrorCause(
        cause=cause.id, kind=kind, title=title, cure=cure, code=cause.code, sqlstate=cause.sqlstate or None,
        table=cause.table or None, object=shown_object,
        transactions=cause.transactions, oldest=cause.oldest,
    )  # fmt: skip


def _execution(execution: EngineExecution, reveals: bool) -> ErrorExecution:
    return ErrorExecution(
        **execution.model_dump(exclude={"error", "failures"}),
        failures=[
            ExecutionFailure(
                error_id=failure.error_id, code=failure.error.code, sqlstate=failure.error.sqlstate or None,
                message=_words(failure.error, reveals),
            )
            for failure in execution.failures
        ],
        message=execution.error and _words(execution.error, reveals),
    )  # fmt: skip


def _words(error: EngineError, reveals: bool) -> str:
    return error.detail if error.detail and reveals else error.message


def shown(error: ParkedError, reveals: bool) -> ParkedTransaction:
    """Its message quotes the server, and that the row: keys, values that do not fit."""
    return ParkedTransaction(**_columns(error, reveals))


def _columns(error: ParkedError, reveals: bool) -> dict[str, Any]:
    version = error.edits_version
    return {
        **error.model_dump(exclude={"edits_version"}),
        "sqlstate": error.sqlstate or None,
        "constraint": (error.constraint or None) if reveals else None,
        "message": error.message if reveals else None,
        "etag": None if version is None else etag_of(version),
    }


async def tree(
    context: Context, stream_id: str, destination_id: str, error_id: int, limit: int, cursor: str | None
) -> ParkedTree:
    """The transactions that wait behind one."""
    after = 0 if cursor is None else int(decode_cursor(cursor, int)[0])
    _, client = await engine_of(context, stream_id, destination_id)
    try:
        found = await client.error_tree(stream_id, destination_id, error_id, after, limit)
    except EngineFailure as failure:
        if failure.code == ErrorCode.NOT_FOUND:
            raise too_old("cannot tell which transactions wait behind one") from failure
        raise problem_for(context.principal, failure) from failure
    reveals = context.principal.role.covers(Role.OPERATOR)
    return ParkedTree(
        dependants=[ParkedDependant(**_columns(dependant, reveals)) for dependant in found.dependants],
        total=found.total,
        behind=found.behind,
        behind_total=found.behind_total,
        next_cursor=None if found.next_after is None else encode_cursor(found.next_after),
    )


def too_old(cannot: str) -> Problem:
    return Problem("engine_refused", f"This engine {cannot}.", "Upgrade it to the version of the control plane.")


async def show(
    context: Context, stream_id: str, destination_id: str, error_id: int, after: int, limit: int
) -> ParkedContents:
    """Its changes with higher numbers than `after`."""
    row, client = await engine_of(context, stream_id, destination_id)
    try:
        contents = await client.error_contents(stream_id, destination_id, error_id, after, limit)
    except EngineFailure as failure:
        raise problem_of(failure) from failure
    if after and contents.changes and (contents.changes[0].number or 0) <= after:
        raise too_old(f"shows only the first {len(contents.changes)} changes of a transaction")
    # Committed before the answer leaves: nobody sees rows without an entry, and without rows there is nothing to note.
    facts = {"destination_id": destination_id, "error_id": error_id, **({"after": after} if after else {})}
    record(context, "stream_errors_get", ("stream", row.id, row.name), after=facts)
    return ParkedContents.model_validate(
        {**contents.model_dump(mode="json", by_alias=True), "error": shown(contents.error, reveals=True)}
    )


async def execute(
    context: Context, stream_id: str, destination_id: str, error_id: int, role: str | None
) -> ExecutionAccepted:
    row, client = await engine_of(context, stream_id, destination_id)
    facts = {"destination_id": destination_id, "error_id": error_id, **_of_role(role)}
    choice = Choice(stream_id, destination_id, error_id, role=role)
    await settle_open(context, client, stream_id, destination_id)
    async with asked(context, row, "stream_errors_execute", facts, _not_executed_as) as entry:
        execution = await executed_of(client, choice, client.execute_error(stream_id, destination_id, error_id, role))
    return await _accepted(context, entry, client, execution)


async def execute_all(context: Context, stream_id: str, destination_id: str, role: str | None) -> ExecutionAccepted:
    row, client = await engine_of(context, stream_id, destination_id)
    facts = {"destination_id": destination_id, **_of_role(role)}
    choice = Choice(stream_id, destination_id, role=role)
    await settle_open(context, client, stream_id, destination_id)
    async with asked(context, row, "stream_errors_execute_all", facts, _not_executed_as) as entry:
        execution = await executed_of(client, choice, client.execute_error(stream_id, destination_id, None, role))
    return await _accepted(context, entry, client, execution)


async def execute_cause(
    context: Context, stream_id: str, destination_id: str, cause: str, role: str | None
) -> ExecutionAccepted:
    row, client = await engine_of(context, stream_id, destination_id)
    facts = {"destination_id": destination_id, "cause": cause, **_of_role(role)}
    choice = Choice(stream_id, destination_id, cause=cause, role=role)
    await settle_open(context, client, stream_id, destination_id)
    async with asked(context, row, "stream_errors_execute_cause", facts, _not_executed_as) as entry:
        known = (await client.errors(stream_id, destination_id, 0, 1, False)).causes or []
        group = next((group for group in known if group.id == cause), None)
        if group is not None:  # its id says nothing to whoever reads the audit log
            entry.after = {**facts, **group.model_dump(include={"code", "sqlstate", "table", "transactions"})}
            await context.release()
        execution = await executed_of(client, choice, client.execute_cause(stream_id, destination_id, cause, role))
    return await _accepted(context, entry, client, execution)


async def _accepted(
    context: Context, entry: AuditRow, client: EngineClient, execution: ExecutionReport | EngineExecution
) -> ExecutionAccepted:
    """The answer; the same entry of the audit log tells what became of an execution that failed after a part of it, or
    that took longer than its request."""
    if isinstance(execution, ExecutionReport):
        if execution.state == ExecutionState.RUNNING:
            await _follow(context, entry, client)
        return ExecutionAccepted(state=execution.state, executed=None, failed_again=None, message=None)
    outcome = {"executed": execution.executed, "failed_again": execution.failed_again}
    entry.after = {**(entry.after or {}), **outcome, "code_of_failure": execution.error and execution.error.code}
    await context.release()
    return ExecutionAccepted(
        state=execution.state, **outcome, message=execution.error and _words(execution.error, reveals=True)
    )


async def _follow(context: Context, entry: AuditRow, client: EngineClient) -> None:
    """Has the collector write the outcome into the entry (workers/executions.py)."""
    facts = entry.after or {}
    try:
        execution = (await client.errors(entry.target_id, facts["destination_id"], 0, 1, False)).execution
    except EngineFailure as failure:
        log.warning("an execution cannot be followed", stream=entry.target_id, error=failure.message)
        execution = None
    if execution is None:
        entry.after = {**facts, "state": ExecutionOutcome.UNKNOWN}
    else:
        started_at = execution.started_at.isoformat()
        entry.after = {**facts, "state": ExecutionOutcome.RUNNING, "started_at": started_at}
    await context.release()


async def dry_run(context: Context, stream_id: str, destination_id: str, error_id: int, role: str | None) -> DryRun:
    row, client = await engine_of(context, stream_id, destination_id)
    facts = {"destination_id": destination_id, "error_id": error_id, **_of_role(role)}
    async with asked(context, row, "stream_errors_dry_run", facts, _not_executed_as) as entry:
        tried = await client.dry_run_error(stream_id, destination_id, error_id, role)
    entry.after = {**facts, **_outcome(tried)}
    await context.release()
    if tried.error is None:
        return DryRun(
            succeeds=True, code=None, sqlstate=None, table=None, message=None, title=None, cure=None,
            changes=tried.changes, edited=tried.edited, left_out=tried.left_out, settled=tried.settled,
            failed_change=None,
        )  # fmt: skip
    error = tried.error
    _, title, cure = likely(error.code, error.sqlstate, error.message)
    return DryRun(
        succeeds=False, code=error.code, sqlstate=error.sqlstate or None, table=error.table or None,
        message=_words(error, reveals=True), title=title, cure=cure,
        changes=tried.changes, edited=tried.edited, left_out=tried.left_out, settled=tried.settled,
        failed_change=tried.failed_change,
    )  # fmt: skip


def _outcome(tried: EngineDryRun) -> dict[str, Any]:
    """For the audit log."""
    if tried.error is None:
        return {"succeeds": True}
    return {"succeeds": False, "code": tried.error.code, "sqlstate": tried.error.sqlstate or None}


def _of_role(role: str | None) -> dict[str, Any]:
    """For the audit log."""
    return {} if role is None else {"role": role}


def wrong(*errors: FieldProblem) -> Problem:
    return Problem("invalid_request", errors[0].message, errors[0].cure, errors=errors)


def _not_executed_as(failure: EngineFailure) -> Problem:
    """The problem of a request that may name a role."""
    if failure.code == ErrorCode.INVALID_REQUEST:
        cure = "Name a role that the destination has."
        return wrong(FieldProblem(pointer="/role", code="unknown_role", message=failure.message, cure=cure))
    if failure.code == ErrorCode.NOT_FOUND:
        return too_old("cannot execute parked transactions as another role")
    return not_executed(failure)


def not_executed(failure: EngineFailure) -> Problem:
    """The engine's cures are for streams that have stopped; this one runs."""
    if failure.code == ErrorCode.DATABASE_BUSY:
        cure = "Try again once that has ended: the error queue shows how far an execution is."
        return Problem("engine_busy", failure.message, cure)
    if failure.status != httpx.codes.CONFLICT:
        return problem_of(failure)
    cure = failure.cure.replace("retry the stream", "execute it again")
    return Problem("execution_refused", failure.message, cure or "Read the error queue again.")


@asynccontextmanager
async def asked(
    context: Context, row: StreamRow, action: str, facts: dict[str, Any],
    as_problem: Callable[[EngineFailure], Problem] = problem_of,
) -> AsyncGenerator[AuditRow, None]:  # fmt: skip
    """Records the request in the audit log before it goes to the engine. A refusal goes into the same entry; where the
    engine may have done it all the same, the entry says that its end is not known. After it, the number of parked
    transactions is another one, whatever became of the request."""
    entry = record(context, action, ("stream", row.id, row.name), after=facts)
    await context.release()
    try:
        yield entry
    except EngineFailure as failure:
        outcome = {"finished": False} if failure.perhaps_done else {"refused": failure.code}
        entry.after = {**(entry.after or facts), **outcome}
        await context.release()
        raise as_problem(failure) from failure
    finally:
        if action in CHANGE_THE_NUMBER:
            await _forget_parked(context, row.id, facts["destination_id"])


async def _forget_parked(context: Context, stream_id: str, destination_id: str) -> None:
    try:
        await Bus(context.resources.redis).forget_parked(stream_id, destination_id)
    except (RedisError, OSError) as error:
        log.warning("redis cannot be reached", error=str(error))
