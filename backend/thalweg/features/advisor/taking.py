"""Takes an advisor run: gathers, analyses, finds; then writes it down. For requests and for the collector alike."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.advisor.analysis import PathView, analyse, with_locks
from thalweg.advisor.finding import FactSheet, Finding
from thalweg.advisor.findings.ranking import find
from thalweg.advisor.schemas import Analysis
from thalweg.db.models import AdvisorRunRow
from thalweg.features.advisor import repository
from thalweg.features.advisor.facts import Depth, facts_of
from thalweg.features.advisor.gathering import Span, gather, thresholds_of
from thalweg.features.advisor.presentation import path_lines, series_of, summary_document
from thalweg.features.advisor.schemas import LiveAnalysis, RunReason, RunScope
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources


@dataclass(frozen=True)
class RunRequest:
    scope: RunScope
    span: Span
    reason: RunReason
    requested_by: str
    detail: str | None = None
    name: str | None = None
    note: str | None = None
    facts: bool = True


@dataclass(frozen=True)
class Taken:
    """`live` is False when Redis could not be reached: then nothing is known of the paths."""

    analysis: Analysis
    views: list[PathView]
    findings: list[Finding]
    sheets: list[FactSheet]
    live: bool


async def examine(
    session: AsyncSession, resources: Resources, scope: RunScope, span: Span, *, depth: Depth, at: datetime
) -> Taken:
    """An analysis that is not written down. Ends the session's transaction before it looks at what is outside."""
    stream_id = scope.stream_id
    if stream_id is None and scope.component_id is not None:
        stream_id = scope.component_id.partition(":")[0]
    thresholds = thresholds_of(await repository.policy(session))
    gathered = await gather(session, resources, stream_id, span)
    analysis, views = analyse(gathered.inputs, thresholds, at, scope.component_id)
    known = await facts_of(resources, gathered.rows, views, Depth.NOTHING if span.is_past else depth)
    locked = {
        path_id: share
        for path_id, facts in known.by_path.items()
        if facts.destination is not None and (share := facts.destination.waits.locked_by_others) > 0
    }
    if locked:
        analysis = with_locks(views, locked, thresholds, at)
    queried = {sheet.database: sheet.queried_at for sheet in known.sheets if sheet.error is None}
    for database in analysis.databases:
        database.last_queried = queried.get(database.global_name)
    found = find(views, known.by_path, thresholds.event)
    return Taken(analysis, views, found, known.sheets, gathered.live)


async def take_run(session: AsyncSession, resources: Resources, request: RunRequest) -> AdvisorRunRow:
    """A run that is not in the session yet: what it was taken from is outside of it."""
    at = now()
    depth = Depth.NOW if request.facts else Depth.NOTHING
    taken = await examine(session, resources, request.scope, request.span, depth=depth, at=at)
    return AdvisorRunRow(
        at=at, reason=request.reason, detail=request.detail, requested_by=request.requested_by, name=request.name,
        note=request.note, kept=False, scope=request.scope.model_dump(mode="json"), version=1,
        stream_ids=sorted({path.stream_id for path in taken.analysis.paths}),
        summary=summary_document(taken.analysis, taken.findings, _present(request.span, at)),
        document={
            "analysis": taken.analysis.model_dump(mode="json"),
            "findings_ranked": [finding.model_dump(mode="json") for finding in taken.findings],
            "fact_sheets": [sheet.model_dump(mode="json") for sheet in taken.sheets],
            "series": [series.model_dump(mode="json") for series in series_of(taken.views)],
        },
    )  # fmt: skip


def _present(span: Span, at: datetime) -> datetime | None:
    """None: the span has an end of its own."""
    return at if span.end is None else None


async def keep_run(session: AsyncSession, row: AdvisorRunRow) -> AdvisorRunRow:
    """Flushes, so that the run has its id."""
    session.add(row)
    await session.flush()
    return row


async def look(
    session: AsyncSession, resources: Resources, scope: RunScope, span: Span
) -> LiveAnalysis:  # fmt: skip
    at = now()
    taken = await examine(session, resources, scope, span, depth=Depth.RECENT, at=at)
    return LiveAnalysis(
        at=at, live=taken.live, analysis=taken.analysis,
        paths=path_lines(taken.analysis, taken.findings, _present(span, at)), findings_ranked=taken.findings,
    )  # fmt: skip
