"""The advisor over HTTP. Applying cures spans features: see `thalweg.workflows.advisor_cure`."""

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import AwareDatetime

from thalweg.advisor.finding import Finding
from thalweg.advisor.schemas import (
    AdvisorComponent,
    AdvisorDatabase,
    AdvisorLink,
    ComponentStatistic,
    PathBottleneck,
    PathStatistic,
)
from thalweg.features.advisor import comparing, cures, schedules, service
from thalweg.features.advisor.rendering import delimited
from thalweg.features.advisor.rendering.page import html_page
from thalweg.features.advisor.rendering.tables import TableName
from thalweg.features.advisor.schemas import (
    WINDOW_DEFAULT,
    WINDOW_MAX,
    AppliedCure,
    Comparison,
    LiveAnalysis,
    Policy,
    PolicyUpdate,
    Run,
    RunCreate,
    RunReason,
    RunSummary,
    RunUpdate,
    Schedule,
    ScheduleCreate,
    ScheduleUpdate,
)
from thalweg.kernel.context import Admin, Operator, TransactionalRoute, Viewer
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import ID_PATTERN, Id, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, prefix="/advisor", tags=["advisor"])
RunId = Annotated[int, Path(ge=1, le=2**62)]
CureId = Annotated[int, Path(ge=1, le=2**62)]
StreamId = Annotated[str | None, Query(pattern=ID_PATTERN, description="Only this stream's paths.")]
ComponentId = Annotated[
    str | None,
    Query(pattern=r"^[a-z0-9]{8,32}:[a-z0-9:.-]{1,60}$", description="Only paths through this component."),
]
Time = Annotated[AwareDatetime | None, Query(description="With time zone.")]


@router.get("/analysis", operation_id="advisor_analysis_get")
async def get_analysis(
    context: Viewer,
    stream_id: StreamId = None,
    component_id: ComponentId = None,
    window_seconds: Annotated[int, Query(ge=2, le=WINDOW_MAX)] = WINDOW_DEFAULT,
    begin_at: Time = None,
    end_at: Time = None,
) -> LiveAnalysis:
    """Analyse the last seconds, or what was recorded between two times. Nothing is stored. The databases of a path
    that is limited are queried for what only they know (triggers, tables, sessions); all who look share what was read
    in the last 5 s, or in four times as long as the reading took. The past is judged without them.

    `begin_at` and `end_at` go together and replace `window_seconds`: the answer to "what happened then".
    """
    return await service.analyse_now(context, stream_id, component_id, window_seconds, begin_at, end_at)


@router.post("/runs", status_code=201, operation_id="advisor_runs_create", response_model=Run)
async def create_run(body: RunCreate, context: Operator, once: OnceOnly) -> Response:
    """Take a snapshot of all paths, or of those through one stream or component, with the databases' own facts."""
    return await once.run_prepared(
        context, lambda: service.taken_run(context, body), lambda run: service.create_run(context, run)
    )


@router.get("/runs", operation_id="advisor_runs_list")
async def list_runs(
    context: Viewer,
    stream_id: StreamId = None,
    reason: RunReason | None = None,
    begin_at: Time = None,
    end_at: Time = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> Page[RunSummary]:
    """Runs, newest first."""
    return await service.list_runs(context, stream_id, reason, begin_at, end_at, limit, cursor)


@router.get("/runs/{run_id}", operation_id="advisor_runs_get")
async def get_run(run_id: RunId, context: Viewer, response: Response) -> Run:
    """A complete run: the six tables, findings, facts."""
    run = await service.get_run(context, run_id)
    response.headers["ETag"] = run.etag
    return run


@router.patch("/runs/{run_id}", operation_id="advisor_runs_update")
async def update_run(
    run_id: RunId, body: RunUpdate, context: Operator, response: Response, if_match: IfMatch = None
) -> RunSummary:
    """Name it, annotate it, or exempt it from the retention."""
    run = await service.update_run(context, run_id, body, if_match)
    response.headers["ETag"] = run.etag
    return run


@router.delete("/runs/{run_id}", status_code=204, operation_id="advisor_runs_delete")
async def delete_run(run_id: RunId, context: Operator) -> None:
    await service.delete_run(context, run_id)


@router.get("/comparison", operation_id="advisor_comparison_get")
async def get_comparison(
    context: Viewer,
    before: Annotated[int, Query(ge=1, le=2**62, description="A run's id.")],
    after: Annotated[int, Query(ge=1, le=2**62, description="A run's id.")],
) -> Comparison:
    """Two runs side by side: every statistic before, after, and its change."""
    return await comparing.compare(context, before, after)


@router.get("/runs/{run_id}/components", operation_id="advisor_run_components_list")
async def list_components(run_id: RunId, context: Viewer) -> list[AdvisorComponent]:
    """The table COMPONENT."""
    return (await service.get_run(context, run_id)).analysis.components


@router.get("/runs/{run_id}/component-links", operation_id="advisor_run_links_list")
async def list_links(run_id: RunId, context: Viewer) -> list[AdvisorLink]:
    """The table COMPONENT_LINK."""
    return (await service.get_run(context, run_id)).analysis.component_links


@router.get("/runs/{run_id}/component-statistics", operation_id="advisor_run_component_statistics_list")
async def list_component_statistics(run_id: RunId, context: Viewer) -> list[ComponentStatistic]:
    """The table COMPONENT_STAT, with the statistics of sub-components and threads."""
    return (await service.get_run(context, run_id)).analysis.component_statistics


@router.get("/runs/{run_id}/databases", operation_id="advisor_run_databases_list")
async def list_databases(run_id: RunId, context: Viewer) -> list[AdvisorDatabase]:
    """The table DATABASE."""
    return (await service.get_run(context, run_id)).analysis.databases


@router.get("/runs/{run_id}/path-statistics", operation_id="advisor_run_path_statistics_list")
async def list_path_statistics(run_id: RunId, context: Viewer) -> list[PathStatistic]:
    """The table PATH_STAT."""
    return (await service.get_run(context, run_id)).analysis.path_statistics


@router.get("/runs/{run_id}/path-bottlenecks", operation_id="advisor_run_path_bottlenecks_list")
async def list_path_bottlenecks(run_id: RunId, context: Viewer) -> list[PathBottleneck]:
    """The table PATH_BOTTLENECK: one row for each path."""
    return (await service.get_run(context, run_id)).analysis.path_bottlenecks


class ReportFormat(StrEnum):
    """TEXT: all six tables, pipe-delimited. CSV: one of them. HTML: self-contained, with charts."""

    TEXT = "text"
    CSV = "csv"
    HTML = "html"


@router.get(
    "/runs/{run_id}/report",
    operation_id="advisor_runs_report",
    response_class=Response,
    responses={200: {"description": "The report.", "content": {
        "text/plain": {"schema": {"type": "string"}}, "text/csv": {"schema": {"type": "string"}},
        "text/html": {"schema": {"type": "string"}},
    }}},
)  # fmt: skip
async def get_report(
    run_id: RunId,
    context: Viewer,
    format_: Annotated[ReportFormat, Query(alias="format")] = ReportFormat.TEXT,
    table: Annotated[TableName, Query(description="For CSV.")] = TableName.COMPONENT_STAT,
) -> Response:
    """A run as a file: for spreadsheets, for people without access, for the record."""
    run = await service.get_run(context, run_id)
    if format_ is ReportFormat.TEXT:
        return _file(delimited.pipe_text(run), "text/plain", f"advisor-run-{run_id}.txt")
    if format_ is ReportFormat.CSV:
        return _file(delimited.csv_text(run, table), "text/csv", f"advisor-run-{run_id}-{table}.csv")
    return _file(html_page(run), "text/html", f"advisor-run-{run_id}.html")


def _file(content: str, media_type: str, name: str) -> Response:
    return Response(content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@router.get("/runs/{run_id}/findings", operation_id="advisor_run_findings_list")
async def list_findings(run_id: RunId, context: Viewer) -> list[Finding]:
    """The findings of all paths, the most important first, with evidence and cures."""
    return (await service.get_run(context, run_id)).findings_ranked


@router.get("/schedules", operation_id="advisor_schedules_list")
async def list_schedules(context: Viewer, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[Schedule]:
    return await schedules.list_schedules(context, limit, cursor)


@router.post("/schedules", status_code=201, operation_id="advisor_schedules_create", response_model=Schedule)
async def create_schedule(body: ScheduleCreate, context: Operator, once: OnceOnly) -> Response:
    """Take a run at regular intervals, the first one immediately."""
    return await once.run(context, lambda: schedules.create_schedule(context, body))


@router.get("/schedules/{schedule_id}", operation_id="advisor_schedules_get")
async def get_schedule(schedule_id: Id, context: Viewer, response: Response) -> Schedule:
    schedule = await schedules.get_schedule(context, schedule_id)
    response.headers["ETag"] = schedule.etag
    return schedule


@router.patch("/schedules/{schedule_id}", operation_id="advisor_schedules_update")
async def update_schedule(
    schedule_id: Id, body: ScheduleUpdate, context: Operator, response: Response, if_match: IfMatch = None
) -> Schedule:
    schedule = await schedules.update_schedule(context, schedule_id, body, if_match)
    response.headers["ETag"] = schedule.etag
    return schedule


@router.delete("/schedules/{schedule_id}", status_code=204, operation_id="advisor_schedules_delete")
async def delete_schedule(schedule_id: Id, context: Operator) -> None:
    """Delete a schedule. Its runs stay."""
    await schedules.delete_schedule(context, schedule_id)


@router.get("/policy", operation_id="advisor_policy_get")
async def get_policy(context: Viewer, response: Response) -> Policy:
    """The thresholds of bottlenecks, and how long runs are kept."""
    policy = await schedules.get_policy(context)
    response.headers["ETag"] = policy.etag
    return policy


@router.patch("/policy", operation_id="advisor_policy_update")
async def update_policy(
    body: PolicyUpdate, context: Admin, response: Response, if_match: IfMatch = None
) -> Policy:  # fmt: skip
    policy = await schedules.update_policy(context, body, if_match)
    response.headers["ETag"] = policy.etag
    return policy


@router.get("/cures", operation_id="advisor_cures_list")
async def list_cures(
    context: Viewer, stream_id: StreamId = None, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None
) -> Page[AppliedCure]:
    """Cures that were applied, newest first, and whether they helped."""
    return await cures.list_cures(context, stream_id, limit, cursor)


@router.get("/cures/{cure_id}", operation_id="advisor_cures_get")
async def get_cure(cure_id: CureId, context: Viewer) -> AppliedCure:
    return cures.resource_of(await cures.existing_cure(context, cure_id))
