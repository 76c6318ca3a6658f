"""Where a stream runs: on one engine, or captured on one and applied on another."""

from dataclasses import dataclass

from thalweg.db.models import EngineRow
from thalweg.features.streams.schemas import StreamCreate
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem
from thalweg.workflows import repository


@dataclass(frozen=True)
class Placement:
    capture: EngineRow
    apply: EngineRow

    @property
    def sender_id(self) -> str | None:
        """Of the engine that sends; None when nothing lies between capture and apply."""
        return None if self.capture.id == self.apply.id else self.capture.id


async def place(context: Context, body: StreamCreate) -> Placement:
    """Raises no_engine, or invalid_request that names the field and what to do."""
    engines = await repository.all_engines(context.session)
    if not engines:
        raise Problem(
            "no_engine", "A stream needs an engine to run it, and none is enrolled.",
            "Enrol one: thalweg-admin enrol-local on this host, or POST /api/v1/engines/enrolments.",
        )  # fmt: skip
    placed = body.capture_engine_id or body.apply_engine_id
    if placed is None:
        engine = _chosen(engines, "/engine_id", body.engine_id)
        return Placement(engine, engine)
    if body.engine_id is not None:
        raise _wrong(
            "/engine_id", "ambiguous", "engine_id does not go with capture_engine_id and apply_engine_id.",
            "Send engine_id for one engine, or the other two for one engine each.",
        )  # fmt: skip
    placement = Placement(
        _chosen(engines, "/capture_engine_id", body.capture_engine_id or placed),
        _chosen(engines, "/apply_engine_id", body.apply_engine_id or placed),
    )
    if placement.sender_id is not None:
        _check_propagation(placement)
    return placement


def _chosen(engines: list[EngineRow], pointer: str, engine_id: str | None) -> EngineRow:
    if engine_id is None and len(engines) == 1:
        return engines[0]
    for engine in engines:
        if engine.id == engine_id:
            return engine
    names = ", ".join(f"{engine.name} ({engine.id})" for engine in engines)
    message = "There are several engines." if engine_id is None else f"There is no engine with the id {engine_id}."
    raise _wrong(pointer, "unknown_id", message, f"Choose one of {names}.")


def _check_propagation(placement: Placement) -> None:
    for pointer, engine in (("/capture_engine_id", placement.capture), ("/apply_engine_id", placement.apply)):
        if engine.identity_name is None:
            raise _wrong(
                pointer, "identity_missing", f"{engine.name} has no identity to show to another engine.",
                "An engine gets one by itself while it is online: check that it is, and that its version is that of "
                "the control plane. Or let one engine capture and apply.",
            )  # fmt: skip
    if placement.apply.reached_at is None:
        raise _wrong(
            "/apply_engine_id", "propagation_address_missing",
            f"It is not known where {placement.capture.name} reaches {placement.apply.name}.",
            f"Start thalwegd of {placement.apply.name} with --propagation-listen HOST:PORT, and set the engine's "
            "propagation address when others reach it under another one.",
        )  # fmt: skip


def _wrong(pointer: str, code: str, message: str, cure: str) -> Problem:
    error = FieldProblem(pointer=pointer, code=code, message=message, cure=cure)
    return Problem("invalid_request", message, cure, errors=[error])
