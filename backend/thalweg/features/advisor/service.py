"""Runs: taking, reading, naming and deleting them."""

from datetime import datetime

from thalweg.db.audit import record
from thalweg.db.models import AdvisorRunRow
from thalweg.db.pages import page_newest_first
from thalweg.features.advisor import repository
from thalweg.features.advisor.gathering import Span
from thalweg.features.advisor.presentation import run_of, summary_of
from thalweg.features.advisor.schemas import LiveAnalysis, Run, RunCreate, RunReason, RunScope, RunSummary, RunUpdate
from thalweg.features.advisor.taking import RunRequest, keep_run, look, take_run
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match
from thalweg.kernel.idempotency import Created
from thalweg.kernel.models import FieldProblem, Page
from thalweg.kernel.problems import Problem, not_found


def target_of_run(row: AdvisorRunRow) -> tuple[str, str, str]:
    return "advisor_run", str(row.id), row.name or f"run {row.id}"


async def taken_run(context: Context, body: RunCreate) -> AdvisorRunRow:
    """Not written down yet."""
    await check_scope(context, body.stream_id, body.component_id)
    given = body.begin_at is not None and body.end_at is not None
    scope = RunScope(
        stream_id=body.stream_id, component_id=body.component_id, window_seconds=None if given else body.window_seconds
    )
    request = RunRequest(
        scope, _span(body.window_seconds, body.begin_at, body.end_at), RunReason.ON_DEMAND, context.principal.name,
        name=body.name, note=body.note, facts=body.facts,
    )  # fmt: skip
    return await take_run(context.session, context.resources, request)


async def create_run(context: Context, row: AdvisorRunRow) -> Created:
    await keep_run(context.session, row)
    record(context, "advisor_runs_create", target_of_run(row), after={"scope": row.scope, "name": row.name})
    return Created(run_of(row), 201, {"Location": f"/api/v1/advisor/runs/{row.id}"})


def _span(window_seconds: int, begin: datetime | None, end: datetime | None) -> Span:
    if begin is None or end is None:
        return Span(seconds=window_seconds)
    return Span(begin=begin, end=end)


async def check_scope(context: Context, stream_id: str | None, component_id: str | None) -> None:
    """Raises invalid_request when there is no such stream."""
    named = {"/stream_id": stream_id, "/component_id": (component_id or "").partition(":")[0] or None}
    for pointer, identifier in named.items():
        if identifier is not None and not await repository.streams_of(context.session, identifier):
            message = f"There is no stream with the id {identifier}."
            raise Problem(
                "invalid_request", message, "Read the list of streams for the ids that exist.",
                errors=[FieldProblem(pointer=pointer, code="unknown_id", message=message)],
            )  # fmt: skip


async def analyse_now(
    context: Context, stream_id: str | None, component_id: str | None, window_seconds: int,
    begin: datetime | None, end: datetime | None,
) -> LiveAnalysis:  # fmt: skip
    if begin is not None and end is not None and begin >= end:
        message = "begin_at must be before end_at."
        raise Problem(
            "invalid_request", message, "Exchange them.",
            errors=[FieldProblem(pointer="/query/begin_at", code="invalid_range", message=message)],
        )  # fmt: skip
    scope = RunScope(stream_id=stream_id, component_id=component_id, window_seconds=window_seconds)
    return await look(context.session, context.resources, scope, _span(window_seconds, begin, end))


async def list_runs(
    context: Context, stream_id: str | None, reason: RunReason | None, begin: datetime | None, end: datetime | None,
    limit: int, cursor: str | None,
) -> Page[RunSummary]:  # fmt: skip
    query = repository.runs(stream_id, reason, begin, end)
    rows, following = await page_newest_first(context.session, query, AdvisorRunRow.id, limit, cursor)
    return Page[RunSummary](items=[summary_of(row) for row in rows], next_cursor=following)


async def existing_run(context: Context, run_id: int, *, whole: bool = False) -> AdvisorRunRow:
    row = await repository.run_by_id(context.session, run_id, whole=whole)
    if row is None:
        raise not_found("advisor run", str(run_id))
    return row


async def get_run(context: Context, run_id: int) -> Run:
    return run_of(await existing_run(context, run_id, whole=True))


async def update_run(context: Context, run_id: int, body: RunUpdate, if_match: str | None) -> RunSummary:
    row = await existing_run(context, run_id)
    check_if_match(if_match, row.version)
    before = _own(row)
    if "name" in body.model_fields_set:
        row.name = body.name
    if "note" in body.model_fields_set:
        row.note = body.note
    if body.kept is not None:
        row.kept = body.kept
    row.version += 1
    await context.session.flush()
    record(context, "advisor_runs_update", target_of_run(row), before, _own(row))
    return summary_of(row)


def _own(row: AdvisorRunRow) -> dict[str, object]:
    return {"name": row.name, "note": row.note, "kept": row.kept}


async def delete_run(context: Context, run_id: int) -> None:
    row = await existing_run(context, run_id)
    record(context, "advisor_runs_delete", target_of_run(row), before=_own(row))
    await context.session.delete(row)
