"""Work that spans the advisor and streams: applying a finding's cure and undoing it."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from thalweg.features.advisor.schemas import AppliedCure, CureApply
from thalweg.kernel.context import Operator, TransactionalRoute
from thalweg.kernel.idempotency import OnceOnly
from thalweg.workflows import advisor_cure

router = APIRouter(route_class=TransactionalRoute, prefix="/advisor", tags=["advisor"])
CureId = Annotated[int, Path(ge=1, le=2**62)]


@router.post("/cures", status_code=201, operation_id="advisor_cures_apply", response_model=AppliedCure)
async def apply_cure(body: CureApply, context: Operator, once: OnceOnly) -> Response:
    """Apply a finding's cure: a change of parameters, or an index. Snapshots before and after show whether it helped.

    With `by_hand` nothing is changed: what a person has done is judged against the run with the finding.
    """
    return await once.run_prepared(
        context,
        lambda: advisor_cure.prepare_cure(context, body),
        lambda prepared: advisor_cure.apply_cure(context, body, prepared),
    )


@router.post("/cures/{cure_id}:undo", operation_id="advisor_cures_undo")
async def undo_cure(cure_id: CureId, context: Operator) -> AppliedCure:
    """Undo a cure: the parameters return to what they were."""
    return await advisor_cure.undo_cure(context, cure_id)
