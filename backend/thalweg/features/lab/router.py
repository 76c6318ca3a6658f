"""The lab over HTTP: the demo's load, and what makes its stream slow."""

from fastapi import APIRouter

from thalweg.features.lab import service
from thalweg.features.lab.causes import CauseName
from thalweg.features.lab.schemas import Lab, LabCauseStart, LabLoadUpdate
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer

router = APIRouter(route_class=TransactionalRoute, tags=["lab"])


@router.get("/lab", operation_id="lab_get")
async def get_lab(context: Viewer) -> Lab:
    """The actions that the lab offers on the demo, and those in effect. Without a demo, `available` is false."""
    return await service.get_lab(context)


@router.put("/lab/load", operation_id="lab_load_change")
async def change_load(body: LabLoadUpdate, context: Operator) -> Lab:
    """Set the demo's load, in transactions per second, for ten minutes at most. It takes effect within 5 s."""
    return await service.change_load(context, body)


@router.post("/lab/causes/{cause}:start", operation_id="lab_causes_start")
async def start_cause(cause: CauseName, context: Operator, body: LabCauseStart | None = None) -> Lab:
    """Slow the demo's stream down. Any other cause that is on ends. The cause is undone after ten minutes (the missing
    index after three), as soon as the changes being applied permit it. A cause that is on begins again, with the given
    delay."""
    return await service.start_cause(context, cause, body or LabCauseStart())


@router.post("/lab/causes/{cause}:stop", operation_id="lab_causes_stop")
async def stop_cause(cause: CauseName, context: Operator) -> Lab:
    """End a cause. This has no effect if it is off."""
    return await service.stop_cause(context, cause)


@router.post("/lab:reset", operation_id="lab_reset")
async def reset(context: Operator) -> Lab:
    """Restore the normal state: end every cause, and reset the load."""
    return await service.reset(context)
