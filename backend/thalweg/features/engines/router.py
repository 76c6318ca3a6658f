"""Engines and their enrolment over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from thalweg.features.engines import service
from thalweg.features.engines.schemas import Engine, EngineEnrol, EngineUpdate, Enrolment, EnrolmentCreate, StreamDrop
from thalweg.kernel.context import Admin, Resources, TransactionalRoute, Viewer, get_resources
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import Id, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, tags=["engines"])


@router.get("/engines", operation_id="engines_list")
async def list_engines(context: Viewer, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[Engine]:
    return await service.list_engines(context, limit, cursor)


@router.get("/engines/{engine_id}", operation_id="engines_get")
async def get_engine(engine_id: Id, context: Viewer, response: Response) -> Engine:
    engine = await service.get_engine(context, engine_id)
    response.headers["ETag"] = engine.etag
    return engine


@router.patch("/engines/{engine_id}", operation_id="engines_update")
async def update_engine(
    engine_id: Id, body: EngineUpdate, context: Admin, response: Response, if_match: IfMatch = None
) -> Engine:
    """Change the address at which other engines reach it. Engines that send to it learn of the change immediately."""
    engine = await service.update_engine(context, engine_id, body, if_match)
    response.headers["ETag"] = engine.etag
    return engine


@router.post("/engines/{engine_id}:drop-stream", operation_id="engines_drop_stream")
async def drop_stream(engine_id: Id, body: StreamDrop, context: Admin, response: Response) -> Engine:
    """Have an engine drop a stream that the store does not know. The stream's objects in both databases are removed,
    except for the rows that it copied."""
    engine = await service.drop_stream(context, engine_id, body)
    response.headers["ETag"] = engine.etag
    return engine


@router.delete("/engines/{engine_id}", status_code=204, operation_id="engines_delete")
async def delete_engine(engine_id: Id, context: Admin) -> None:
    """Remove an engine that runs no stream."""
    await service.delete_engine(context, engine_id)


@router.post("/engines/enrolments", status_code=201, operation_id="enrolments_create", response_model=Enrolment)
async def create_enrolment(body: EnrolmentCreate, context: Admin, once: OnceOnly) -> Response:
    """Create a token with which one engine can enrol."""
    return await once.run(context, lambda: service.create_enrolment(context, body))


@router.post("/engines/enrol", status_code=201, operation_id="engines_enrol")
async def enrol_engine(
    body: EngineEnrol, request: Request, resources: Annotated[Resources, Depends(get_resources)]
) -> Engine:
    """Enrol an engine with a one-time token. No login is needed."""
    address = request.client.host if request.client else None
    return await service.enrol(request.state.session, resources, body, request.state.request_id, address)
