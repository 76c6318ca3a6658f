"""Replication slots of the registered databases' servers, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Path

from thalweg.features.slots import service
from thalweg.features.slots.schemas import SlotServers
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer
from thalweg.kernel.models import Id

router = APIRouter(route_class=TransactionalRoute, tags=["slots"])

SlotName = Annotated[str, Path(pattern=r"^[a-z0-9_]{1,63}$")]


@router.get("/slots", operation_id="slots_list")
async def list_slots(context: Viewer) -> SlotServers:
    """The replication slots of every server that has a registered database, also those that are not Thalweg's."""
    return await service.list_slots(context)


@router.delete("/databases/{database_id}/slots/{slot_name}", status_code=204, operation_id="slots_drop")
async def drop_slot(database_id: Id, slot_name: SlotName, context: Operator) -> None:
    """Drop an orphan: a slot with the name of a stream's slot that belongs to no stream. Refused while a client reads
    from it.

    Another Thalweg installation that captures from the same server creates slots of the same form, and its streams are
    not known here.
    """
    await service.drop_slot(context, database_id, slot_name)
