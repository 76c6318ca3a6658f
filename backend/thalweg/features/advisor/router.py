"""The advisor over HTTP. Applying cures spans features: see `thalweg.workflows.advisor_cure`."""

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
from thalweg.features.advisor import service
from thalweg.features.advisor.schemas import (
    WINDOW_DEFAULT,
    WINDOW_MAX,
    LiveAnalysis,
    Run,
    RunCreate,
    RunReason,
    RunSummary,
    RunUpdate,
)
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import ID_PATTERN, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, prefix="/advisor", tags=["advisor"])
RunId = Annotated[int, Path(ge=1, le=2**62)]
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
    """Analyse the last seconds, or what was recorded between two times. Nothing is written down, no database is read.

    `begin_at` and `end_at` go together and replace `window_seconds`: the answer to "what happened then".
    """
    return await service.analyse_now(context, stream_id, component_id, window_seconds, begin_at, end_at)


@router.post("/runs", status_code=201, operation_id="advisor_runs_create", response_model=Run)
async def create_run(body: RunCreate, context: Operator, once: OnceOnly) -> Response:
    """Take a snapshot of all paths, or of those through one stream or component, with the databases' own facts."""
    return await once.run(context, lambda: service.create_run(context, body))


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
    """A run whole: the six tables, findings, facts."""
    run = await service.get_run(context, run_id)
    response.headers["ETag"] = run.etag
    return run


@router.patch("/runs/{run_id}", operation_id="advisor_runs_update")
async def update_run(
    run_id: RunId, body: RunUpdate, context: Operator, response: Response, if_match: IfMatch = None
) -> RunSummary:
    """Name it, annotate it, or keep it from the retention."""
    run = await service.update_run(context, run_id, body, if_match)
    response.headers["ETag"] = run.etag
    return run


@router.delete("/runs/{run_id}", status_code=204, operation_id="advisor_runs_delete")
async def delete_run(run_id: RunId, context: Operator) -> None:
    await service.delete_run(context, run_id)


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


@router.get("/runs/{run_id}/findings", operation_id="advisor_run_findings_list")
async def list_findings(run_id: RunId, context: Viewer) -> list[Finding]:
    """What slows the paths, the most important first, with evidence and cures."""
    return (await service.get_run(context, run_id)).findings_ranked
