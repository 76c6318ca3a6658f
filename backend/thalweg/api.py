"""Puts the API together: routers, failures, middleware, the built console and its help."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel

from thalweg import __version__
from thalweg.composition import close_resources, make_resources
from thalweg.db.idempotency import StoredAnswers
from thalweg.features.advisor.router import router as advisor
from thalweg.features.alerts.router import router as alerts
from thalweg.features.audit.router import router as audit
from thalweg.features.changes.router import router as changes
from thalweg.features.databases.router import router as databases
from thalweg.features.engines.router import router as engines
from thalweg.features.events.router import router as events
from thalweg.features.health.router import router as health
from thalweg.features.health.router import scraped
from thalweg.features.history.router import router as history
from thalweg.features.identity.router import router as identity
from thalweg.features.lab.router import router as lab
from thalweg.features.operations.router import router as operations
from thalweg.features.slots.router import router as slots
from thalweg.features.streams.conflict_router import router as conflicts
from thalweg.features.streams.router import router as streams
from thalweg.features.topology.router import router as topology
from thalweg.features.tracking.router import router as tracking
from thalweg.kernel.context import asks_for_login
from thalweg.kernel.http import failures
from thalweg.kernel.http.console import Console
from thalweg.kernel.http.guard import API_PREFIX, RequestGuard
from thalweg.kernel.http.methods import MethodCheck, addresses_of
from thalweg.kernel.http.strangers import StrangersAllowance
from thalweg.kernel.openapi import build_openapi
from thalweg.kernel.settings import Settings
from thalweg.live.hub import EventHub, running
from thalweg.live.schemas import AlertEvent, EngineEvent, OperationEvent, Sample, StreamDeletedEvent, StreamStatusEvent
from thalweg.workflows.advisor_router import router as advisor_cures
from thalweg.workflows.router import router as workflows

DESCRIPTION = (
    "Everything that the console and the command line do. Failures are RFC 9457 problem details with a stable "
    "`type`, lists have opaque cursors, creating POSTs take an Idempotency-Key, updates take If-Match."
)
EVENTS: list[type[BaseModel]] = [Sample, StreamStatusEvent, StreamDeletedEvent, OperationEvent, EngineEvent, AlertEvent]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    resources = make_resources(app.state.settings, "thalweg api")
    app.state.resources = resources
    app.state.idempotency_store = StoredAnswers()
    app.state.hub = EventHub(resources.redis)
    try:
        async with running(app.state.hub):
            yield
    finally:
        await close_resources(resources)


def _methods(router: APIRouter) -> list[tuple[str, set[str]]]:
    return [(route.path, route.methods or set()) for route in router.routes if isinstance(route, APIRoute)]


def _open_paths(router: APIRouter) -> list[str]:
    """Those that somebody without a login may ask."""
    routes = [route for route in router.routes if isinstance(route, APIRoute)]
    return [route.path for route in routes if not asks_for_login(route.dependant)]


def create_app(settings: Settings | None = None) -> FastAPI:
    settings = settings or Settings()
    app = FastAPI(
        title="Thalweg", version=__version__, description=DESCRIPTION, lifespan=lifespan,
        openapi_url="/api/v1/openapi.json", docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.settings = settings
    routers = (
        identity, databases, engines, workflows, streams, conflicts, history, tracking, changes, operations, topology,
        slots, advisor, advisor_cures, alerts, events, audit, lab,
    )  # fmt: skip
    api = APIRouter(prefix=API_PREFIX)
    for router in routers:
        api.include_router(router)
    app.include_router(api)
    app.include_router(health)
    app.include_router(scraped)
    app.router.default = Console(settings.console_directory, settings.help_directory)
    failures.install(app)
    known = [(API_PREFIX + path, methods) for router in routers for path, methods in _methods(router)]
    app.add_middleware(MethodCheck, addresses=addresses_of([*known, *_methods(health), *_methods(scraped)]))
    app.add_middleware(StrangersAllowance)
    app.add_middleware(
        RequestGuard, body_bytes_max=settings.body_bytes_max,
        open_paths=frozenset(API_PREFIX + path for router in routers for path in _open_paths(router)),
    )  # fmt: skip

    def openapi() -> dict[str, Any]:
        return build_openapi(app, EVENTS)

    app.openapi = openapi  # type: ignore[method-assign]
    return app
