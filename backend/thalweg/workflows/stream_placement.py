"""Places a stream: the engine that captures, and the engine that applies at each destination."""

from dataclasses import dataclass

from thalweg.db.models import EngineRow
from thalweg.features.streams.schemas import DestinationCreate
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem
from thalweg.workflows import repository


@dataclass(frozen=True)
class Placement:
    capture: EngineRow
    applies: list[EngineRow]
    """One for each destination."""


async def place(context: Context, capture_engine_id: str | None, destinations: list[DestinationCreate]) -> Placement:
    """Raises no_engine, or invalid_request that names the field and what to do."""
    engines = await _engines(context)
    if capture_engine_id is None and len(destinations) == 1:
        capture_engine_id = destinations[0].engine_id
    capture = _chosen(engines, "/capture_engine_id", capture_engine_id)
    applies = [
        capture
        if destination.engine_id is None
        else _chosen(engines, f"/destinations/{number}/engine_id", destination.engine_id)
        for number, destination in enumerate(destinations)
    ]
    for number, apply in enumerate(applies):
        check_apart(capture, apply, f"/destinations/{number}/engine_id", applies[:number])
    return Placement(capture, applies)


async def capturing_engine(context: Context, engine_id: str | None) -> EngineRow:
    """Raises as `place` does."""
    return _chosen(await _engines(context), "/capture_engine_id", engine_id)


async def _engines(context: Context) -> list[EngineRow]:
    engines = await repository.all_engines(context.session)
    if not engines:
        raise Problem(
            "no_engine", "A stream needs an engine to run it, and none is enrolled.",
            "Enrol one: thalweg-admin enrol-local on this host, or POST /api/v1/engines/enrolments.",
        )  # fmt: skip
    return engines


async def engine_for(context: Context, engine_id: str) -> EngineRow:
    """The engine of a destination that is added by a separate request."""
    return _chosen(await repository.all_engines(context.session), "/engine_id", engine_id)


def _chosen(engines: list[EngineRow], pointer: str, engine_id: str | None) -> EngineRow:
    if engine_id is None and len(engines) == 1:
        return engines[0]
    for engine in engines:
        if engine.id == engine_id:
            return engine
    names = ", ".join(f"{engine.name} ({engine.id})" for engine in engines)
    message = "There are several engines." if engine_id is None else f"There is no engine with the id {engine_id}."
    raise wrong(pointer, "unknown_id", message, f"Choose one of {names}.")


def check_apart(capture: EngineRow, apply: EngineRow, pointer: str, others: list[EngineRow]) -> None:
    """May this engine apply what that one captures? `others` apply at the stream's other destinations."""
    if capture.id == apply.id:
        return
    for at, engine in (("/capture_engine_id", capture), (pointer, apply)):
        if engine.identity_name is None:
            raise wrong(
                at, "identity_missing", f"{engine.name} has no identity to show to another engine.",
                "An engine gets one by itself while it is online: check that it is, and that its version is that of "
                "the control plane. Or let one engine capture and apply.",
            )  # fmt: skip
    if apply.reached_at is None:
        raise wrong(
            pointer, "propagation_address_missing",
            f"{capture.name} does not know where to reach {apply.name}.",
            f"Start thalwegd of {apply.name} with --propagation-listen HOST:PORT, and set the engine's "
            "propagation address when others reach it under another one.",
        )  # fmt: skip
    if apply.id in (other.id for other in others):
        raise wrong(
            pointer, "engine_in_use", f"{apply.name} receives for another destination of this stream already.",
            f"Let {capture.name} apply at one of the two, or run another engine beside it.",
        )  # fmt: skip


def wrong(pointer: str, code: str, message: str, cure: str) -> Problem:
    error = FieldProblem(pointer=pointer, code=code, message=message, cure=cure)
    return Problem("invalid_request", message, cure, errors=[error])
