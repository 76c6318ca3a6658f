"""Operators' decisions about single changes of parked transactions."""

from collections.abc import Awaitable, Callable
from typing import Any

from thalweg.db.models import AuditRow
from thalweg.engine_client.access import problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.parked_documents import ParkedContents
from thalweg.features.streams import repository
from thalweg.features.streams.audited_changes import bounded
from thalweg.features.streams.error_queue import asked, engine_of, not_executed, too_old, wrong
from thalweg.features.streams.error_queue_schemas import ChangeEdit
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem

EDITS = {"stream_errors_edit": "edited", "stream_errors_leave_out": "left out", "stream_errors_restore": "taken back"}
"""The audit log's actions, in words."""


async def edit(
    context: Context, stream_id: str, destination_id: str, error_id: int, number: int, body: ChangeEdit,
    if_match: str | None,
) -> None:  # fmt: skip
    """Leaves a change of a transaction out, or gives it other values. The audit log keeps the change as it came."""
    row, client = await engine_of(context, stream_id, destination_id)
    place = (stream_id, destination_id, error_id)
    contents = await _change(client, *place, number)
    version = await _version(context, contents, place, if_match)
    _check_values(contents, body)
    document = body.model_dump(exclude={"values"} if body.left_out else {"left_out"})
    facts = {"destination_id": destination_id, "error_id": error_id, "change": number, **document}
    action = "stream_errors_leave_out" if body.left_out else "stream_errors_edit"
    async with asked(context, row, action, facts, not_executed) as entry:
        entry.before = bounded(contents)
        await context.release()
        await _decide(
            context, client, entry, place, number, version,
            lambda: client.edit_error(*place, number, document, version),
        )  # fmt: skip


async def restore(
    context: Context, stream_id: str, destination_id: str, error_id: int, number: int, if_match: str | None
) -> None:
    row, client = await engine_of(context, stream_id, destination_id)
    place = (stream_id, destination_id, error_id)
    contents = await _change(client, *place, number)
    version = await _version(context, contents, place, if_match)
    facts = {"destination_id": destination_id, "error_id": error_id, "change": number}
    async with asked(context, row, "stream_errors_restore", facts, not_executed) as entry:
        await _decide(
            context, client, entry, place, number, version, lambda: client.restore_error(*place, number, version)
        )


async def _change(
    client: EngineClient, stream_id: str, destination_id: str, error_id: int, number: int
) -> ParkedContents:
    try:
        return await client.error_change(stream_id, destination_id, error_id, number)
    except EngineFailure as failure:
        if failure.code == ErrorCode.NOT_FOUND:
            raise too_old("cannot edit parked transactions") from failure
        raise problem_of(failure) from failure


Place = tuple[str, str, int]
"""Stream, destination and transaction."""


async def _version(context: Context, contents: ParkedContents, place: Place, if_match: str | None) -> str | None:
    """The version that the engine has to find. None: any, because the client or an older engine does not care."""
    version = contents.error.edits_version
    if version is None:
        return None
    try:
        return version if check_if_match(if_match, version) else None
    except Problem as problem:
        if problem.code != "stale_resource":
            raise
        raise await _stale(context, place) from problem


async def _decide(
    context: Context, client: EngineClient, entry: AuditRow, place: Place, number: int, version: str | None,
    ask: Callable[[], Awaitable[None]],
) -> None:  # fmt: skip
    """Raises stale_resource where somebody else has decided between the check and the engine's."""
    try:
        await ask()
    except EngineFailure as failure:
        if version is None or failure.code != ErrorCode.INVALID_REQUEST:
            raise
        if (await _change(client, *place, number)).error.edits_version == version:
            raise
        entry.after = {**(entry.after or {}), "refused": "stale_resource"}
        await context.release()
        raise await _stale(context, place) from failure


async def _stale(context: Context, place: Place) -> Problem:
    """The refusal, with who has decided, as far as the audit log tells."""
    found = await repository.last_decision(context.session, place, tuple(EDITS))
    await context.release()
    message = "Its changes have been decided about since you read it."
    if found is not None:
        facts: dict[str, Any] = found.after or {}
        message = (
            f"{found.actor_name} has decided about its changes since you read it: change {facts['change']} was "
            f"{EDITS[found.action]} at {found.at:%Y-%m-%d %H:%M:%S} UTC."
        )
    return Problem("stale_resource", message, "Open the transaction again, then repeat your decision.")


def _check_values(contents: ParkedContents, body: ChangeEdit) -> None:
    change = contents.changes[0]
    if body.values and change.operation not in ("INSERT", "UPDATE"):
        message = f"A {change.operation} has no new values; it can be left out."
        raise wrong(FieldProblem(pointer="/values", code="no_new_values", message=message))
    columns = {column.name for column in change.columns}
    unknown = [
        FieldProblem(
            pointer="/values/" + name.replace("~", "~0").replace("/", "~1")[:200], code="unknown_column",
            message=f"The change of {change.schema_name}.{change.table} brings no such column.",
            cure=f"Choose one of {', '.join(sorted(columns))[:1000]}. The source sends neither generated columns nor "
            "those that only the destination has.",
        )
        for name in body.values
        if name not in columns
    ]  # fmt: skip
    if unknown:
        raise wrong(*unknown[:10])
