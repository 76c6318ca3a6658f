"""Applies a finding's cure and takes it back: through the ordinary change of a stream, with a snapshot before.

The second snapshot, and whether it helped, come from the collector once the path has run with the change.
"""

from datetime import timedelta
from typing import Any

from thalweg.advisor.finding import Cure, CureKind, Finding
from thalweg.db.audit import record
from thalweg.db.models import AdvisorCureRow, StreamRow
from thalweg.features.advisor.cures import existing_cure, resource_of
from thalweg.features.advisor.gathering import Span
from thalweg.features.advisor.presentation import run_of
from thalweg.features.advisor.schemas import AppliedCure, CureApply, CureState, RunReason, RunScope
from thalweg.features.advisor.service import existing_run
from thalweg.features.advisor.taking import RunRequest, take_run
from thalweg.features.streams import service as streams
from thalweg.features.streams.schemas import StreamUpdate
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.problems import Problem, not_found


async def apply_cure(context: Context, body: CureApply) -> Created:
    finding, cure = _chosen(run_of(await existing_run(context, body.run_id, whole=True)).findings_ranked, body)
    stream = await streams.existing_stream(context, finding.stream_id)
    before = await _snapshot(context, stream, finding, body.measure_after_seconds)
    earlier, changes = await _change(context, stream.id, {change.name: change.proposed for change in cure.parameters})
    at = now()
    row = AdvisorCureRow(
        run_id=body.run_id, finding=finding.model_dump(mode="json"), stream_id=stream.id, path_id=finding.path_id,
        parameters_before=earlier, parameters_after=changes, state=CureState.MEASURING,
        applied_by=context.principal.name, before_run_id=before, measure_seconds=body.measure_after_seconds,
        measure_at=at + timedelta(seconds=body.measure_after_seconds), created_at=at,
    )  # fmt: skip
    context.session.add(row)
    await context.session.flush()
    record(context, "advisor_cures_apply", _target(row, stream), earlier, changes)
    return Created(resource_of(row), 201, {"Location": f"/api/v1/advisor/cures/{row.id}"})


def _chosen(findings: list[Finding], body: CureApply) -> tuple[Finding, Cure]:
    finding = next((item for item in findings if item.id == body.finding_id), None)
    if finding is None or body.cure_index >= len(finding.cures):
        raise not_found("finding with such a cure in this run", body.finding_id)
    cure = finding.cures[body.cure_index]
    if cure.kind is not CureKind.PARAMETER:
        raise Problem(
            "conflict", "This cure is not a change of parameters: the control plane does not carry it out.",
            f"{cure.text} Then take another run.", sql=cure.sql,
        )  # fmt: skip
    return finding, cure


async def _snapshot(context: Context, stream: StreamRow, finding: Finding, seconds: int) -> int:
    scope = RunScope(stream_id=stream.id, component_id=None, window_seconds=seconds)
    request = RunRequest(
        scope, Span(seconds=seconds), RunReason.BEFORE_CURE, context.principal.name, detail=finding.title
    )
    return (await take_run(context.session, context.resources, request)).id


async def _change(context: Context, stream_id: str, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Through the service that every change of parameters goes through. Gives the effective values before, and those
    now."""
    before = (await streams.get_stream(context, stream_id)).effective_parameters
    await streams.update_stream(context, stream_id, StreamUpdate(parameters=changes), "*", None)
    return {name: before[name] for name in changes}, changes


async def undo_cure(context: Context, cure_id: int) -> AppliedCure:
    row = await existing_cure(context, cure_id, lock=True)
    if row.undone_at is not None:
        raise Problem("conflict", "This cure was taken back already.", "Read the stream's parameters.")
    stream = await streams.existing_stream(context, row.stream_id)
    await _change(context, stream.id, row.parameters_before)
    row.state, row.undone_at, row.measure_at = CureState.UNDONE, now(), None
    await context.session.flush()
    record(context, "advisor_cures_undo", _target(row, stream), row.parameters_after, row.parameters_before)
    return resource_of(row)


def _target(row: AdvisorCureRow, stream: StreamRow) -> tuple[str, str, str]:
    return "advisor_cure", str(row.id), f"{stream.name}: {row.finding['title']}"[:200]
