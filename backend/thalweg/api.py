"""Puts the API together: routers, problem details, middleware, the built console."""

from typing import Any

from fastapi import APIRouter, FastAPI

from thalweg import __version__
from thalweg.features.audit.router import router as audit
from thalweg.features.databases.router import router as databases
from thalweg.features.engines.router import router as engines
from thalweg.features.events.router import router as events
from thalweg.features.health.router import router as health
from thalweg.features.identity.router import router as identity
from thalweg.features.operations.router import router as operations
from thalweg.features.streams.router import router as streams
from thalweg.features.topology.router import router as topology
from thalweg.kernel.openapi import build_openapi
from thalweg.live.schemas import EngineEvent, OperationEvent, Sample, StreamStatusEvent
from thalweg.workflows.router import router as workflows

DESCRIPTION = (
    "Everything that the console and the command line do. Failures are RFC 9457 problem details with a stable "
    "`type`, lists have opaque cursors, creating POSTs take an Idempotency-Key, updates take If-Match."
)


def create_app() -> FastAPI:
    app = FastAPI(
        title="Thalweg", version=__version__, description=DESCRIPTION,
        openapi_url="/api/v1/openapi.json", docs_url=None, redoc_url=None,
    )  # fmt: skip
    api = APIRouter(prefix="/api/v1")
    for router in (identity, databases, engines, workflows, streams, operations, topology, events, audit):
        api.include_router(router)
    app.include_router(api)
    app.include_router(health)

    def openapi() -> dict[str, Any]:
        return build_openapi(app, [Sample, StreamStatusEvent, OperationEvent, EngineEvent])

    app.openapi = openapi  # type: ignore[method-assign]
    return app
