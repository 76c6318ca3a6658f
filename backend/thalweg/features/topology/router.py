"""The topology over HTTP."""

from fastapi import APIRouter

from thalweg.features.topology import service
from thalweg.features.topology.schemas import Topology
from thalweg.kernel.context import TransactionalRoute, Viewer

router = APIRouter(route_class=TransactionalRoute, tags=["topology"])


@router.get("/topology", operation_id="topology_get")
async def get_topology(context: Viewer) -> Topology:
    """Databases and components of all streams as a directed graph."""
    return await service.get_topology(context)
