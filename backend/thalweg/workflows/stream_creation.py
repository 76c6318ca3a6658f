"""Creates a stream: checked first, then written whole in one transaction, so that nothing is half created."""

from thalweg.db.audit import record
from thalweg.db.models import EngineRow, StreamRow
from thalweg.db.operations import (
    OperationAccepted,
    OperationKind,
    OperationState,
    ProgressUnit,
    start_operation,
)
from thalweg.features.streams import repository as streams
from thalweg.features.streams.lifecycle import DesiredStatus
from thalweg.features.streams.schemas import StreamCreate
from thalweg.features.streams.service import desired_facts
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.ids import new_id
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem, name_taken
from thalweg.workflows import repository
from thalweg.workflows.stream_preparation import database_of, not_ready, preflight


async def create_stream(context: Context, body: StreamCreate) -> Created:
    if await streams.name_is_taken(context.session, body.name):
        raise name_taken("stream", body.name)
    source = await database_of(context, "/source_id", body.source_id)
    destination = await database_of(context, "/destination_id", body.destination_id)
    engine = await _choose_engine(context, body.engine_id)
    result = await preflight(context, source, destination, body.rules, body.parameters)
    if not result.preflight.ready:
        raise not_ready(result.preflight, "Nothing was created.")
    row = StreamRow(
        id=new_id(), name=body.name, source_id=source.id, destination_id=destination.id, engine_id=engine.id,
        rules=body.rules.model_dump(by_alias=True), parameters=body.parameters, force=False,
        tables=[{"schema": schema, "table": table} for schema, table in result.tables],
        desired_status=DesiredStatus.ENABLED if body.start else DesiredStatus.DISABLED,
    )  # fmt: skip
    row.changed_revision = await streams.next_revision(context.session, engine.id)
    context.session.add(row)
    operation = start_operation(
        context.session, OperationKind.STREAM_CREATE, row.id, row.name, row.changed_revision,
        context.principal.name, ProgressUnit.ROWS, None,
    )  # fmt: skip
    await context.session.flush()
    record(context, "streams_create", ("stream", row.id, row.name), after=desired_facts(row))
    accepted = OperationAccepted(operation_id=operation.id, stream_id=row.id, state=OperationState.PENDING)
    return Created(accepted, 202, {"Location": f"/api/v1/streams/{row.id}"})


async def _choose_engine(context: Context, engine_id: str | None) -> EngineRow:
    engines = await repository.all_engines(context.session)
    if not engines:
        raise Problem(
            "no_engine", "A stream needs an engine to run it, and none is enrolled.",
            "Enrol one: thalweg-admin enrol-local on this host, or POST /api/v1/engines/enrolments.",
        )  # fmt: skip
    if engine_id is None and len(engines) == 1:
        return engines[0]
    for engine in engines:
        if engine.id == engine_id:
            return engine
    names = ", ".join(f"{engine.name} ({engine.id})" for engine in engines)
    message = "There are several engines." if engine_id is None else f"There is no engine with the id {engine_id}."
    raise Problem(
        "invalid_request", message, f"Choose one of {names}.",
        errors=[FieldProblem(pointer="/engine_id", code="unknown_id", message=message)],
    )  # fmt: skip
