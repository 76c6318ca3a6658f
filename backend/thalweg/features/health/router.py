"""Liveness and readiness, without login, and metrics for who has a token: outside /api/v1."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from thalweg import __version__
from thalweg.features.health import service
from thalweg.features.health.schemas import Healthz, Readiness
from thalweg.kernel.context import Resources, Scraper, TransactionalRoute, get_resources
from thalweg.kernel.http.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["health"])
scraped = APIRouter(route_class=TransactionalRoute, tags=["health"])


@router.get("/healthz", operation_id="health_live")
async def healthz() -> Healthz:
    """The process runs."""
    return Healthz(status="ok", version=__version__)


@router.get("/readyz", operation_id="health_ready", responses={503: {"model": Readiness}})
async def readyz(resources: Annotated[Resources, Depends(get_resources)], response: Response) -> Readiness:
    """503 if the store cannot be reached; `degraded` if live data is missing, or nothing is observed."""
    readiness = await service.readiness(resources)
    if readiness.status == "unavailable":
        response.status_code = 503
    return readiness


@scraped.get(
    "/metrics",
    operation_id="health_metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(context: Scraper) -> Response:
    """Prometheus' text format: this process, and the installation's open alerts. A token of the role metrics may read
    this and nothing else."""
    return Response(generate_latest() + await service.alert_metrics(context), media_type=CONTENT_TYPE_LATEST)
