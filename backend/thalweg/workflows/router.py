"""Work that spans databases, engines and streams: previewing, checking, creating and changing a stream."""

from fastapi import APIRouter, Response

from thalweg.db.operations import OperationAccepted
from thalweg.features.streams.rule_schemas import RulesCheck, RulesCheckRequest, RulesTest, RulesTestRequest
from thalweg.features.streams.schemas import (
    DestinationAdd,
    DestinationUpdate,
    PreflightRequest,
    Stream,
    StreamCreate,
    StreamUpdate,
    TablePreview,
    TablePreviewRequest,
)
from thalweg.inspection.schemas import Preflight
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import DestinationId, Id
from thalweg.workflows import (
    destination_addition,
    destination_change,
    rules_check,
    stream_change,
    stream_creation,
    stream_preparation,
)

router = APIRouter(route_class=TransactionalRoute, tags=["streams"])


@router.post("/streams:preview-tables", operation_id="streams_preview_tables")
async def preview_tables(body: TablePreviewRequest, context: Viewer) -> TablePreview:
    """The tables of the source that the rules match, with sizes and keys."""
    return await stream_preparation.preview_tables(context, body)


@router.post("/streams:check-rules", operation_id="streams_check_rules")
async def check_rules(body: RulesCheckRequest, context: Operator) -> RulesCheck:
    """Check row rules before a stream has them: the capturing engine compiles each condition for its table, as it
    is at the source now, and looks whether the changes will bring what the condition reads."""
    return await rules_check.check_rules(context, body)


@router.post("/streams:test-rules", operation_id="streams_test_rules")
async def test_rules(body: RulesTestRequest, context: Operator) -> RulesTest:
    """Try rules of a table before a stream has them: the engine judges changes that you give, the next changes of a
    running stream, and rows that the source has, as a capture would, and says what each rule makes of each. Values of
    rows are shown as the source has them, those that a transformation masks, too; of a stream's changes, columns that
    it masks or drops are not shown. The audit log records that rows were read."""
    return await rules_check.test_rules(context, body)


@router.post("/preflights", operation_id="preflights_run")
async def run_preflight(body: PreflightRequest, context: Operator) -> Preflight:
    """Check the databases for a stream that you are about to create. Nothing remains: what the check tries at the
    destination is rolled back, and holds locks until then."""
    return await stream_preparation.run_preflight(context, body)


@router.post("/streams", status_code=202, operation_id="streams_create", response_model=OperationAccepted)
async def create_stream(body: StreamCreate, context: Operator, once: OnceOnly) -> Response:
    """Create a stream. If the databases are not ready, the request is refused with each failed check, and nothing is
    left behind.

    The operation finishes when the initial copy is done.
    """
    return await once.run_prepared(
        context,
        lambda: stream_creation.check_stream(context, body),
        lambda checked: stream_creation.create_stream(context, body, checked),
    )


@router.patch("/streams/{stream_id}", operation_id="streams_update")
async def patch_stream(
    stream_id: Id, body: StreamUpdate, context: Operator, response: Response, if_match: IfMatch = None
) -> Stream:
    """Change the name, parameters or table rules; parameters marked live and rules take effect while the stream runs.

    New rules are checked like those of a new stream, and refused with each failed check.
    """
    stream = await stream_change.check_and_change(context, stream_id, body, if_match)
    response.headers["ETag"] = stream.etag
    return stream


@router.post(
    "/streams/{stream_id}/destinations", status_code=202, operation_id="destinations_add",
    response_model=OperationAccepted,
)  # fmt: skip
async def add_destination(stream_id: Id, body: DestinationAdd, context: Operator, once: OnceOnly) -> Response:
    """Add a destination to a stream. It is copied and catches up while the others continue. If the database is not
    ready, the request is refused with each failed check.

    The operation finishes when the new destination has caught up.
    """
    return await once.run_prepared(
        context,
        lambda: destination_addition.check_destination(context, stream_id, body),
        lambda checked: destination_addition.add_destination(context, stream_id, body, checked),
    )


@router.patch("/streams/{stream_id}/destinations/{destination_id}", operation_id="destinations_update")
async def update_destination(
    stream_id: Id, destination_id: DestinationId, body: DestinationUpdate, context: Operator, response: Response,
    if_match: IfMatch = None,
) -> Stream:  # fmt: skip
    """Override the stream's parameters at one destination, or give it row rules of its own. The entity tag is the
    stream's.

    New rules are checked like those of a stream, and refused with each failed check.
    """
    stream = await destination_change.update_destination(context, stream_id, destination_id, body, if_match)
    response.headers["ETag"] = stream.etag
    return stream
