"""Applies a finding's cure and takes it back, with a snapshot before.

Parameters go through the ordinary change of a stream, or of its destination where that may have its own. An index is
created by the collector (workers/curing): here it is only checked whether the destination's user may. Cures that a
person has carried out are written down, too. The second snapshot, and whether it helped, come from the collector once
the path has run with the change.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from thalweg.advisor.finding import Cure, CureKind, Finding
from thalweg.db.audit import record
from thalweg.db.models import AdvisorCureRow, AdvisorRunRow, DatabaseRow, StreamRow
from thalweg.db.operations import OperationKind, start_database_work
from thalweg.features.advisor.cures import by_hand, existing_cure, index_of, resource_of
from thalweg.features.advisor.gathering import Span
from thalweg.features.advisor.presentation import run_of
from thalweg.features.advisor.schemas import AppliedCure, CureApply, CureState, RunReason, RunScope
from thalweg.features.advisor.service import existing_run
from thalweg.features.advisor.taking import RunRequest, keep_run, take_run
from thalweg.features.databases.inspections import problem_of
from thalweg.features.streams import destination_actions
from thalweg.features.streams import service as streams
from thalweg.features.streams.parameters import effective
from thalweg.features.streams.schemas import DestinationUpdate, StreamUpdate
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.indexes import PHASES, IndexName, check_may_create
from thalweg.inspection.target import target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.problems import Problem, not_found

AT_WORK = (CureState.APPLYING, CureState.UNDOING)
OVER = {CureState.UNDONE: "was undone already", CureState.FAILED: "was not carried out"}


@dataclass(frozen=True)
class Prepared:
    """Facts gathered from the databases. `snapshot` is not stored yet. There is none for work that a person has already
    done: the run with the finding has the state before."""

    finding: Finding
    cure: Cure
    snapshot: AdvisorRunRow | None


async def prepare_cure(context: Context, body: CureApply) -> Prepared:
    """Raises a problem with the SQL to run by hand where the destination's user may not create the index."""
    finding, cure = _chosen(run_of(await existing_run(context, body.run_id, whole=True)).findings_ranked, body)
    stream = await streams.existing_stream(context, finding.stream_id)
    if body.by_hand:
        return Prepared(finding, cure, None)
    if cure.kind is CureKind.SQL:
        await _check_may_create(context, cure)
    return Prepared(finding, cure, await _snapshot(context, stream, finding, body.measure_after_seconds))


async def apply_cure(context: Context, body: CureApply, prepared: Prepared) -> Created:
    finding, cure = prepared.finding, prepared.cure
    stream = await streams.existing_stream(context, finding.stream_id)
    at = now()
    row = AdvisorCureRow(
        run_id=body.run_id, finding=finding.model_copy(update={"cures": [cure]}).model_dump(mode="json"),
        stream_id=stream.id, path_id=finding.path_id,
        parameters_before={}, parameters_after={}, applied_by=context.principal.name,
        measure_seconds=body.measure_after_seconds, created_at=at,
    )  # fmt: skip
    if prepared.snapshot is None:
        row.state, row.sql, row.before_run_id = CureState.MEASURING, cure.sql, body.run_id
        row.measure_at = at + timedelta(seconds=body.measure_after_seconds)
    elif cure.kind is CureKind.SQL:
        row.before_run_id = (await keep_run(context.session, prepared.snapshot)).id
        await _apply_index(context, row, cure)
    else:
        row.before_run_id = (await keep_run(context.session, prepared.snapshot)).id
        await _apply_parameters(context, row, stream, cure)
        row.measure_at = at + timedelta(seconds=body.measure_after_seconds)
    context.session.add(row)
    await context.session.flush()
    record(context, "advisor_cures_apply", _target(row, stream), *_facts(row))
    return Created(resource_of(row), 201, {"Location": f"/api/v1/advisor/cures/{row.id}"})


def _chosen(findings: list[Finding], body: CureApply) -> tuple[Finding, Cure]:
    finding = next((item for item in findings if item.id == body.finding_id), None)
    if finding is None or body.cure_index >= len(finding.cures):
        raise not_found("finding with such a cure in this run", body.finding_id)
    cure = finding.cures[body.cure_index]
    if not body.by_hand and cure.kind is not CureKind.PARAMETER and cure.index is None:
        raise Problem(
            "conflict", "The control plane does not apply this cure: it is a person's decision.",
            f"{cure.text} Then send this again with by_hand, to have it judged whether it helped.", sql=cure.sql,
        )  # fmt: skip
    if body.by_hand and cure.kind is CureKind.PARAMETER:
        raise Problem("conflict", "Parameters are changed by the control plane.", "Leave by_hand out.")
    return finding, cure


async def _snapshot(context: Context, stream: StreamRow, finding: Finding, seconds: int) -> AdvisorRunRow:
    scope = RunScope(stream_id=stream.id, component_id=None, window_seconds=seconds)
    request = RunRequest(
        scope, Span(seconds=seconds), RunReason.BEFORE_CURE, context.principal.name, detail=finding.title
    )
    return await take_run(context.session, context.resources, request)


# --- parameters


async def _apply_parameters(context: Context, row: AdvisorCureRow, stream: StreamRow, cure: Cure) -> None:
    row.state, row.destination_id = CureState.MEASURING, cure.destination_id
    row.parameters_after = {change.name: change.proposed for change in cure.parameters}
    row.parameters_before = await _effective(context, stream.id, cure.destination_id, list(row.parameters_after))
    await _change(context, row, row.parameters_after)


async def _effective(
    context: Context, stream_id: str, destination_id: str | None, names: list[str]
) -> dict[str, Any]:  # fmt: skip
    stream = await streams.existing_stream(context, stream_id)
    values = effective(streams.definitions_of(context), stream.parameters)
    values |= {} if destination_id is None else _own(stream, destination_id)
    return {name: values[name] for name in names}


def _own(stream: StreamRow, destination_id: str) -> dict[str, Any]:
    return dict(streams.existing_destination(stream, destination_id).parameters)


async def _change(context: Context, row: AdvisorCureRow, changes: dict[str, Any]) -> None:
    """Through the services that every change of parameters goes through."""
    if row.destination_id is None:
        await streams.change_stream(context, row.stream_id, StreamUpdate(parameters=changes), "*", None, {})
        return
    stream = await streams.existing_stream(context, row.stream_id)
    own = _own(stream, row.destination_id) | changes
    # A value that equals the stream's is not kept for the destination.
    whole = effective(streams.definitions_of(context), stream.parameters)
    kept = {name: value for name, value in own.items() if name not in changes or value != whole[name]}
    body = DestinationUpdate(parameters=kept)
    await destination_actions.change(context, row.stream_id, row.destination_id, body, "*", {})


# --- an index


async def _check_may_create(context: Context, cure: Cure) -> None:
    assert cure.index is not None  # noqa: S101
    target = target_of(await _database(context, cure.database_id), context.resources)
    await context.release()
    try:
        await check_may_create(
            target, IndexName(cure.index.schema_name, cure.index.table, cure.index.name), cure.sql or "",
            context.resources.settings.database_connect_timeout,
        )  # fmt: skip
    except ConnectionFailure as failure:
        raise problem_of(failure) from failure


async def _database(context: Context, database_id: str | None) -> DatabaseRow:
    row = await context.session.get(DatabaseRow, database_id)
    if row is None:
        raise not_found("database", database_id or "")
    return row


async def _apply_index(context: Context, row: AdvisorCureRow, cure: Cure) -> None:
    assert cure.index is not None  # noqa: S101
    row.state, row.sql, row.index_name = CureState.APPLYING, cure.sql, cure.index.model_dump()
    database = await _database(context, cure.database_id)
    row.database_id = database.id
    await _start(context, row, database, OperationKind.INDEX_CREATE)


async def _start(context: Context, row: AdvisorCureRow, database: DatabaseRow, kind: OperationKind) -> None:
    operation = start_database_work(
        context.session, kind, database.id, database.name, context.principal.name, len(PHASES)
    )
    await context.session.flush()
    row.operation_id = operation.id


# --- undo


async def undo_cure(context: Context, cure_id: int) -> AppliedCure:
    row = await existing_cure(context, cure_id, lock=True)
    state = CureState(row.state)
    if state in OVER:
        raise Problem("conflict", f"This cure {OVER[state]}.", "Take another run to see how the path is.")
    if by_hand(row):
        raise Problem("conflict", "A person has applied it.", "Undo it at the database, then take another run.")
    if state in AT_WORK:
        raise Problem("conflict", "Its operation is still running.", "Wait until it has ended.")
    stream = await streams.existing_stream(context, row.stream_id)
    row.measure_at = None
    if row.index_name is None:
        await _change(context, row, row.parameters_before)
        row.state, row.undone_at = CureState.UNDONE, now()
    else:
        database = await _database(context, row.database_id)
        row.state = CureState.UNDOING
        await _start(context, row, database, OperationKind.INDEX_DROP)
    await context.session.flush()
    record(context, "advisor_cures_undo", _target(row, stream), *reversed(_facts(row)))
    return resource_of(row)


def _target(row: AdvisorCureRow, stream: StreamRow) -> tuple[str, str, str]:
    return "advisor_cure", str(row.id), f"{stream.name}: {row.finding['title']}"[:200]


def _facts(row: AdvisorCureRow) -> tuple[dict[str, Any], dict[str, Any]]:
    """Before and after, for the audit log."""
    if row.index_name is not None:
        at: dict[str, Any] = {"database_id": row.database_id}
        return {**at, "sql": index_of(row).drop_sql}, {**at, "sql": row.sql}
    if by_hand(row):
        return {}, {"by_hand": row.finding["cures"][0]["text"], "sql": row.sql}
    of = {} if row.destination_id is None else {"destination_id": row.destination_id}
    return {**of, **row.parameters_before}, {**of, **row.parameters_after}
