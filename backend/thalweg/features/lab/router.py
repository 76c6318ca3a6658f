"""The lab over HTTP: the demo's load, and what makes its stream slow."""

from fastapi import APIRouter

from thalweg.features.lab import service
from thalweg.features.lab.causes import CauseName
from thalweg.features.lab.schemas import Lab, LabCauseStart, LabLoadUpdate
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer

router = APIRouter(route_class=TransactionalRoute, tags=["lab"])


@router.get("/lab", operation_id="lab_get")
async def get_lab(context: Viewer) -> Lab:
    """The lab's possible actions on the demo, and its present ones. Without a demo, `available` is false."""
    return await service.get_lab(context)


@router.put("/lab/load", operation_id="lab_load_change")
async def change_load(body: LabLoadUpdate, context: Operator) -> Lab:
    """Let the demo's load make so many transactions a second, for ten minutes at most. It follows within 5 s."""
    return await service.change_load(context, body)


@router.post("/lab/causes/{cause}:start", operation_id="lab_causes_start")
async def start_cause(cause: CauseName, context: Operator, body: LabCauseStart | None = None) -> Lab:
    """Make the demo's stream slow. Another cause that is on ends. After ten minutes, the missing index after three, it
    is taken back, once what is being applied lets that be. One that is on begins anew, with the delay that is said."""
    return await service.start_cause(context, cause, body or LabCauseStart())


@router.post("/lab/causes/{cause}:stop", operation_id="lab_causes_stop")
async def stop_cause(cause: CauseName, context: Operator) -> Lab:
    """Take it back. One that is not on stays so."""
    return await service.stop_cause(context, cause)


@router.post("/lab:reset", operation_id="lab_reset")
async def reset(context: Operator) -> Lab:
    """Back to normal: end every cause, and let the load be the usual one."""
    return await service.reset(context)
